undrop table visits;
