alter type order_state add value 'lost';
alter type order_state drop value 'lost';
