"""What builds the documentation: pictures, tables, the site. No text of a page lives here."""
