"""The processes of the embedded product: a parent that supervises, the engine, the web, the demo's simulator."""
