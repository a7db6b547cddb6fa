create view open_orders as
  select o.id, o.status, o.total, c.name as customer
  from orders o join customers c on c.id = o.customer_id
  where o.status in ('new', 'paid');
