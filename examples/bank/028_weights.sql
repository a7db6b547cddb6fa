alter table letters rename column weight to grams;
