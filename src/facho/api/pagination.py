"""Pages of lists: count, next, previous, results."""

from rest_framework.pagination import PageNumberPagination


class Page(PageNumberPagination):
    """Numbered pages whose size a client may choose, up to what one answer should weigh."""

    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500
