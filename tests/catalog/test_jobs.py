"""Jobs in the catalog: created and changed by commits, one step at a time, with the files that they keep."""

from dataclasses import replace
from typing import Any

import pytest

from seachange import errors
from seachange.catalog.port import Catalog
from seachange.model.ids import DescriptorId, Epoch, IndexId, SegmentId
from seachange.model.jobs import JobChange, JobId, JobRequest, JobStatus
from seachange.model.log import Committed, StaleEpoch, Superseded
from tests.catalog.builders import accept, publish, raise_to, register, request, segment, submit, swap

RUNNING = JobStatus.RUNNING


def change(job_id: int, expected: int, **fields: Any) -> JobChange:
    known: dict[str, Any] = {"status": RUNNING, "descriptors": (DescriptorId(7),), "body": "{}", **fields}
    return JobChange(JobId(job_id), expected, **known)


def reserve(catalog: Catalog, epoch: Epoch, count: int = 1) -> list[SegmentId]:
    return [SegmentId(id_) for id_ in catalog.reserve_segments(epoch, count)]


def collect(catalog: Catalog) -> tuple[SegmentId, ...]:
    return catalog.collect(register(catalog), 0)


def test_a_job_comes_and_goes_with_commits(catalog: Catalog):
    epoch = register(catalog)
    first, second = catalog.new_job_id(), catalog.new_job_id()
    assert (first, second) == (1, 2)
    done = accept(catalog, epoch, jobs=(change(first, 0, body="one", event="began"),))
    (job,) = catalog.jobs()
    assert (job.id, job.revision, job.status, job.body, job.descriptors) == (first, 1, RUNNING, "one", (7,))
    assert (job.epoch, job.updated_seq, job.created_us) == (epoch, done.seq, done.timestamp_us)
    later = accept(catalog, register(catalog), jobs=(change(first, 1, status=JobStatus.SUCCEEDED, descriptors=()),))
    record = catalog.job(first)
    assert record is not None
    assert (record.revision, record.status, record.descriptors, record.epoch) == (2, "succeeded", (), epoch + 1)
    assert (record.created_us, record.updated_us) == (done.timestamp_us, later.timestamp_us)
    assert catalog.jobs(unfinished=True) == ()
    assert catalog.job(second) is None
    assert [(e.job_id, e.seq, e.text) for e in catalog.events()] == [(first, done.seq, "began")]


@pytest.mark.parametrize("expected", [0, 2])
def test_another_revision_refuses_the_whole_commit(catalog: Catalog, expected: int):
    epoch = register(catalog)
    accept(catalog, epoch, jobs=(change(1, 0),))
    asked = request(
        catalog.head(), jobs=(change(1, expected),), descriptors=(publish(9, 0, 1),), raises=(raise_to(9, 1),)
    )
    assert submit(catalog, epoch, asked) == Superseded("job 1")
    assert catalog.descriptors(epoch, catalog.head()) == ()


def test_two_runners_of_one_batch_do_not_both_win(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch, jobs=(change(1, 0),))
    asked = [request(catalog.head(), jobs=(change(1, 1, body=body),)) for body in "ab"]
    one, other = catalog.commit(epoch, asked)
    assert isinstance(one, Committed)
    assert other == Superseded("job 1")
    assert catalog.jobs()[0].body == "a"


def test_a_dead_epoch_changes_no_job(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch, jobs=(change(1, 0),))
    catalog.end_node(epoch)
    assert submit(catalog, epoch, request(catalog.head(), jobs=(change(1, 1),))) == StaleEpoch(epoch)


def test_a_request_does_not_disturb_the_runner(catalog: Catalog):
    epoch = register(catalog)
    accept(catalog, epoch, jobs=(change(1, 0),))
    assert catalog.request_job(JobId(1), JobRequest.PAUSE)
    accept(catalog, epoch, jobs=(change(1, 1),))
    assert catalog.jobs()[0].request is JobRequest.PAUSE
    accept(catalog, epoch, jobs=(change(1, 2, status=JobStatus.CANCELED),))
    assert not catalog.request_job(JobId(1), JobRequest.RESUME)
    assert not catalog.request_job(JobId(5), JobRequest.RESUME)


def test_files_of_a_job_outlive_the_epoch_that_wrote_them(catalog: Catalog):
    writer = register(catalog)
    kept, lost = reserve(catalog, writer, 2)
    accept(catalog, writer, jobs=(change(1, 0, files=(kept,)),))
    catalog.end_node(writer)
    assert collect(catalog) == (lost,)
    catalog.forget_files((lost,))
    # Another goes on, and attaches the file in the commit that lets it go.
    other = register(catalog)
    made = swap(3, None, 0, (segment(kept, 3),))
    accept(catalog, other, jobs=(change(1, 1),), generations=(made,))
    found = catalog.newest_generation(IndexId(3))
    assert found is not None
    assert [member.segment.id for member in found.members] == [kept]
    assert collect(catalog) == ()


def test_files_released_by_a_job_are_garbage(catalog: Catalog):
    epoch = register(catalog)
    one, two, three = reserve(catalog, epoch, 3)
    accept(catalog, epoch, jobs=(change(1, 0, files=(one, two)),))
    accept(catalog, epoch, jobs=(change(1, 1, files=(two, three)),))
    assert collect(catalog) == (one,)
    accept(catalog, epoch, jobs=(change(1, 2, status=JobStatus.FAILED),))
    assert collect(catalog) == (one, two, three)


def test_files_of_a_job_belong_to_it_alone(catalog: Catalog):
    epoch = register(catalog)
    (file,) = reserve(catalog, epoch)
    accept(catalog, epoch, jobs=(change(1, 0, files=(file,)),))
    refused = Superseded(f"segment {file}")
    assert submit(catalog, epoch, request(catalog.head(), jobs=(change(2, 0, files=(file,)),))) == refused
    attach = request(catalog.head(), generations=(swap(3, None, 0, (segment(file, 3),)),))
    assert submit(catalog, epoch, attach) == refused
    assert submit(catalog, epoch, replace(attach, jobs=(change(2, 0),))) == refused
    other = register(catalog)
    (foreign,) = reserve(catalog, other)
    assert submit(catalog, epoch, request(catalog.head(), jobs=(change(1, 1, files=(foreign,)),))) == Superseded(
        f"segment {foreign}"
    )


def test_events_are_returned_in_order(catalog: Catalog):
    catalog.log_event("one")
    catalog.log_event("two", JobId(4))
    assert [(e.job_id, e.text) for e in catalog.events()] == [(0, "one"), (4, "two")]
    # It is recent, so it is kept.
    collect(catalog)
    assert len(catalog.events()) == 2


def test_writers_have_a_mark_of_their_own(catalog: Catalog):
    epoch = register(catalog)
    for _ in range(3):
        accept(catalog, epoch)
    assert [node.write_mark for node in catalog.nodes()] == [0]
    catalog.heartbeat(epoch, catalog.head(), catalog.head(), '["session 1"]')
    catalog.heartbeat(epoch, catalog.head())
    (node,) = catalog.nodes()
    assert (node.low_water, node.write_mark, node.holders) == (3, 3, "[]")
    newer = register(catalog)
    assert [node.write_mark for node in catalog.nodes() if node.epoch == newer] == [3]
    catalog.end_node(newer)
    with pytest.raises(errors.StaleNode):
        catalog.heartbeat(newer, catalog.head())
