"""Record batches and records: headers, compression, single records."""
