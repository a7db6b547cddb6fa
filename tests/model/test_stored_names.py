"""The class names in stored jobs and descriptors, which must not change when classes are renamed or moved.

A name may be added. One that is removed makes jobs of earlier releases unreadable.
"""

from seachange.changer.job import JOB_CODEC
from seachange.model.codecs.descriptor_json import OBJECT_CODEC

JOB_NAMES = """
    constraint.Action elements.CheckConstraint elements.Column elements.ColumnDefault elements.ColumnGenerated
    elements.ColumnDown
    elements.ColumnIdentity elements.ColumnName elements.ColumnNotNull elements.ColumnType elements.Comment
    elements.ConstraintName elements.ConvertedColumn elements.Database elements.EnumLabel elements.EnumType
    elements.EnumValue elements.ForeignKey elements.ForeignKeyParent elements.IndexData elements.IndexName
    elements.KeyConstraint elements.Namespace elements.Owner elements.PrimaryIndex elements.Privileges
    elements.RestoredColumn
    elements.Schema elements.SecondaryIndex elements.Sequence elements.SequenceOwner elements.SequenceSettings
    elements.SequenceStart elements.Table elements.UniqueIndex elements.View elements.ViewQuery
    expression.Expression graph.Skip job.Failure job.Job job.Queued job.StageDone jobs.JobStatus
    object_statements.ObjectKind plan.Change plan.Sequel stages.Phase stages.Progress targets.Goal
    targets.Status targets.Target types.Kind types.SqlType upkeep.Upkeep work.UnitDone
"""
OBJECT_NAMES = """
    access.Access access.PartComment access.RolePrivileges object_statements.ObjectKind objects.Database
    objects.DefaultPrivileges objects.EnumType objects.Role objects.RoleSetting objects.Schema
    objects.Sequence objects.Value objects.View types.Kind types.SqlType
"""


def test_names_of_classes_in_stored_jobs_are_kept():
    assert set(JOB_NAMES.split()) <= JOB_CODEC.names


def test_names_of_classes_in_stored_descriptors_are_kept():
    assert set(OBJECT_NAMES.split()) <= OBJECT_CODEC.names
