alter type order_state rename value 'sent' to 'shipped';
