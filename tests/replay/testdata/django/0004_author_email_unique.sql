--
-- Alter field email on author
--
ALTER TABLE "library_author" ADD CONSTRAINT "library_author_email_uniq" UNIQUE ("email");
CREATE INDEX "library_author_email_like" ON "library_author" ("email" varchar_pattern_ops);
