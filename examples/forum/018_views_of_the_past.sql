update threads set views = 10 * replies;
