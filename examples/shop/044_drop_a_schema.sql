drop schema audit cascade;
