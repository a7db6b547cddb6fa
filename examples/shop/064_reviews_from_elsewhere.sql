-- Reviews of another shop come in, with texts as keys: ours get a letter that tells them apart.
alter table reviews alter column id drop default;
alter table reviews alter column id type text using 'r' || id;
