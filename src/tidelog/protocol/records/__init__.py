"""Record batches and records: headers, compression and single records."""
