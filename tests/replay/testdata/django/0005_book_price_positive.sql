--
-- Create constraint price_positive on model book
--
ALTER TABLE "library_book" ADD CONSTRAINT "price_positive" CHECK ("price" > 0);
--
-- Rename field title on book to name
--
ALTER TABLE "library_book" RENAME COLUMN "title" TO "name";
