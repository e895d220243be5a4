"""The processes: parent, engine, web and simulator of the embedded product; scheduler and worker of the distributed."""
