"""What every room with rows uses: bulk SQL, folded text, secrets, the way to the database and admin base pages."""
