"""The jobs, one module each: settings and a `main()` for spark-submit and `tidelog pipeline`."""
