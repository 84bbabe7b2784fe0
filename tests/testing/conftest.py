from ..index.adapters.servers import milvus_file, postgres  # noqa: F401
