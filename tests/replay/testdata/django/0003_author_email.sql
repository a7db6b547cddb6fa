BEGIN;
--
-- Add field email to author
--
ALTER TABLE "library_author" ADD COLUMN "email" varchar(254) NULL;
COMMIT;
