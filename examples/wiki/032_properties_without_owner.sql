drop table user_properties;
