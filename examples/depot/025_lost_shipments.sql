alter type shipment_state add value 'found';
