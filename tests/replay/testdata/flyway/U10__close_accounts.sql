alter table accounts drop column closed_at, drop column status;
