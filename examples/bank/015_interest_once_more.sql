update accounts set balance = balance + 1 where not closed;
