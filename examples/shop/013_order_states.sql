create type order_state as enum ('new', 'paid', 'sent');
alter table orders
  alter column status drop default,
  alter column status type order_state using status::order_state,
  alter column status set default 'new';
