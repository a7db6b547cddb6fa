update accounts set balance = balance + 1;
