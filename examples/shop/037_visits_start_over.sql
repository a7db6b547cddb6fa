-- Last year's visits are not wanted any more.
truncate visits restart identity;
