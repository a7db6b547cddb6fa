alter type order_state add value 'returned' after 'sent';
alter type order_state add value if not exists 'returned';
