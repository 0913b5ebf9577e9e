"""The engine that runs plans on Apache Spark, through its SQL alone."""
