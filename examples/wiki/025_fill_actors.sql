insert into actor (actor_name) select distinct rev_user_text from revision;
update revision set rev_actor = coalesce(
  (select min(a.actor_id) from actor a where a.actor_name = rev_user_text), 0);
