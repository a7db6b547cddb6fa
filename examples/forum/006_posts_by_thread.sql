create index posts_by_thread on posts (thread_id);
