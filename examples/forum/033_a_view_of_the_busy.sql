create view busy_threads as select id, title, replies from threads where replies > 0;
