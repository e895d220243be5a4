/* The decoder of answers, compiled; python_pages.py is its twin and says what each part is for.
 *
 * A VarBindPage is checked whole when it is made: afterwards every varbind is known to lie inside the data and to be
 * well-formed, so that what reads it later (`varbind_at`, `ColumnBuffer.take`) checks nothing again.
 * Only the limited API of Python 3.11 is used: one build serves all later versions. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum {
    INTEGER = 0x02,
    OCTET_STRING = 0x04,
    NOTHING = 0x05,
    OBJECT_IDENTIFIER = 0x06,
    SEQUENCE = 0x30,
    IP_ADDRESS = 0x40,
    COUNTER32 = 0x41,
    GAUGE32 = 0x42,
    TIMETICKS = 0x43,
    OPAQUE = 0x44,
    COUNTER64 = 0x46,
    NO_SUCH_OBJECT = 0x80,
    NO_SUCH_INSTANCE = 0x81,
    END_OF_MIB_VIEW = 0x82
};

/* The limits of ber_values.py. */
enum { MAX_SUB_IDS = 128, MAX_OID_BYTES = MAX_SUB_IDS * 5, MAX_KEPT_OCTETS = 1024 };
/* Of polling/domain/onu_table.py. */
enum { NO_VALUE = 0, IS_INTEGER = -1 };
/* A sequence, an OID of one byte, a value of none: each with tag and length. */
enum { SMALLEST_VARBIND = 7 };

typedef struct {
    uint32_t oid_at;
    uint32_t value_at;
    uint32_t value_size;
    uint16_t oid_size;
    uint8_t tag;
} VarBind;

typedef struct {
    PyObject_HEAD
    PyObject *data;
    const uint8_t *bytes;
    VarBind *varbinds;
    Py_ssize_t count;
} Page;

typedef struct {
    char *items;
    size_t used;
    size_t room;
} Buffer;

typedef struct {
    PyObject_HEAD
    uint8_t prefix[MAX_OID_BYTES];
    size_t prefix_size;
    uint32_t last[MAX_SUB_IDS];
    Py_ssize_t last_size;
    Py_ssize_t count;
    Buffer suffix_ids, suffix_ends, tags, numbers, sizes, octets;
} ColumnBuffer;

typedef struct {
    PyTypeObject *page_type;
    PyTypeObject *column_type;
    PyObject *malformed;
} State;

static State *state_of(PyTypeObject *type)
{
    PyObject *module = PyType_GetModule(type);
    return module == NULL ? NULL : PyModule_GetState(module);
}

/* ---- Reading: each function returns what is wrong, or NULL. ---- */

static const char *read_field(const uint8_t *bytes, size_t end, size_t *pos, size_t *size)
{
    /* From the length, past the tag, to the content; it must fit before `end`. */
    if (*pos >= end)
        return "message ends in the middle of a field";
    uint64_t length = bytes[(*pos)++];
    if (length >= 0x80) {
        size_t count = length & 0x7f;
        if (count < 1 || count > 4)
            return "length of an unknown form";
        if (count > end - *pos)
            return "message ends in the middle of a length";
        length = 0;
        while (count--)
            length = length << 8 | bytes[(*pos)++];
    }
    if (length > end - *pos)
        return "field is longer than what encloses it";
    *size = (size_t)length;
    return NULL;
}

static const char *check_oid(const uint8_t *oid, size_t size)
{
    if (size == 0 || oid[size - 1] > 0x7f)
        return "object identifier ends in the middle of a number";
    if (size > MAX_OID_BYTES)
        return "object identifier too long";
    size_t ends = 0;
    uint64_t sub_id = 0;
    for (size_t i = 0; i < size; i++) {
        if (oid[i] == 0x80 && sub_id == 0)
            return "padded sub-identifier";
        sub_id = sub_id << 7 | (oid[i] & 0x7f);
        if (sub_id > UINT32_MAX)
            return "sub-identifier over 32 bits";
        if (oid[i] < 0x80) {
            sub_id = 0;
            ends++;
        }
    }
    /* The first number stands for two. */
    return ends + 1 > MAX_SUB_IDS ? "object identifier too long" : NULL;
}

static const char *check_value(uint8_t tag, const uint8_t *value, size_t size)
{
    switch (tag) {
    case INTEGER:
        return size < 1 || size > 4 ? "INTEGER outside 32 bits" : NULL;
    case COUNTER32:
    case GAUGE32:
    case TIMETICKS:
    case COUNTER64: {
        /* One leading zero keeps a large value positive; agents that leave it out mean the same number. */
        size_t width = tag == COUNTER64 ? 8 : 4;
        int fits = size > 0 && (size <= width || (size == width + 1 && value[0] == 0));
        return fits ? NULL : "unsigned value outside its type";
    }
    case OCTET_STRING:
    case OPAQUE:
        return NULL;
    case IP_ADDRESS:
        return size == 4 ? NULL : "IpAddress is not 4 bytes";
    case OBJECT_IDENTIFIER:
        return check_oid(value, size);
    case NOTHING:
    case NO_SUCH_OBJECT:
    case NO_SUCH_INSTANCE:
    case END_OF_MIB_VIEW:
        return size ? "a type without value has one" : NULL;
    default:
        return "unknown type";
    }
}

static const char *read_varbind(const uint8_t *bytes, size_t end, size_t *pos, VarBind *varbind)
{
    size_t size;
    const char *wrong;
    if (bytes[(*pos)++] != SEQUENCE)
        return "a varbind is not a sequence";
    if ((wrong = read_field(bytes, end, pos, &size)))
        return wrong;
    size_t stop = *pos + size;
    if (*pos >= stop || bytes[(*pos)++] != OBJECT_IDENTIFIER)
        return "the name of a varbind is not an object identifier";
    if ((wrong = read_field(bytes, stop, pos, &size)) || (wrong = check_oid(bytes + *pos, size)))
        return wrong;
    varbind->oid_at = (uint32_t)*pos;
    varbind->oid_size = (uint16_t)size;
    *pos += size;
    if (*pos >= stop)
        return "varbind without a value";
    varbind->tag = bytes[(*pos)++];
    if ((wrong = read_field(bytes, stop, pos, &size)))
        return wrong;
    if (*pos + size != stop)
        return "value does not end with its varbind";
    if ((wrong = check_value(varbind->tag, bytes + *pos, size)))
        return wrong;
    int is_cut = (varbind->tag == OCTET_STRING || varbind->tag == OPAQUE) && size > MAX_KEPT_OCTETS;
    varbind->value_at = (uint32_t)*pos;
    varbind->value_size = is_cut ? MAX_KEPT_OCTETS : (uint32_t)size;
    *pos = stop;
    return NULL;
}

/* ---- Values that were checked ---- */

static size_t read_sub_ids(const uint8_t *oid, size_t size, uint32_t *sub_ids)
{
    size_t count = 0;
    uint32_t sub_id = 0;
    for (size_t i = 0; i < size; i++) {
        sub_id = sub_id << 7 | (oid[i] & 0x7f);
        if (oid[i] < 0x80) {
            sub_ids[count++] = sub_id;
            sub_id = 0;
        }
    }
    return count;
}

static int64_t read_number(const uint8_t *value, size_t size, int is_signed)
{
    uint64_t number = is_signed && (value[0] & 0x80) ? UINT64_MAX : 0;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | value[i];
    int64_t same_bits;
    memcpy(&same_bits, &number, sizeof same_bits);
    return same_bits;
}

static PyObject *make_tuple(const uint32_t *sub_ids, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLong(sub_ids[i]);
        /* Takes the reference, and puts up with NULL as the tuple does. */
        if (number == NULL || PyTuple_SetItem(tuple, i, number) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *make_oid(const uint8_t *oid, size_t size)
{
    /* One more than is decoded: the first number stands for two. */
    uint32_t sub_ids[MAX_SUB_IDS + 1];
    size_t count = read_sub_ids(oid, size, sub_ids + 1);
    uint32_t root = sub_ids[1] < 40 ? 0 : sub_ids[1] < 80 ? 1 : 2;
    sub_ids[0] = root;
    sub_ids[1] -= 40 * root;
    return make_tuple(sub_ids, (Py_ssize_t)count + 1);
}

static PyObject *make_value(const uint8_t *value, size_t size, uint8_t tag)
{
    switch (tag) {
    case INTEGER:
        return PyLong_FromLongLong(read_number(value, size, 1));
    case COUNTER32:
    case GAUGE32:
    case TIMETICKS:
    case COUNTER64:
        return PyLong_FromUnsignedLongLong((uint64_t)read_number(value, size, 0));
    case OBJECT_IDENTIFIER:
        return make_oid(value, size);
    case OCTET_STRING:
    case OPAQUE:
    case IP_ADDRESS:
        return PyBytes_FromStringAndSize((const char *)value, (Py_ssize_t)size);
    default:
        Py_INCREF(Py_None);
        return Py_None;
    }
}

/* ---- Page ---- */

static Page *new_page(PyTypeObject *type, PyObject *data, size_t most_varbinds)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Page *page = (Page *)allocate(type, 0);
    if (page == NULL)
        return NULL;
    Py_INCREF(data);
    page->data = data;
    page->bytes = (const uint8_t *)PyBytes_AsString(data);
    page->varbinds = PyMem_Malloc((most_varbinds + 1) * sizeof(VarBind));
    if (page->varbinds == NULL) {
        Py_DECREF(page);
        PyErr_NoMemory();
        return NULL;
    }
    return page;
}

static PyObject *page_new(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    PyObject *data;
    Py_ssize_t start, end;
    if (named != NULL && PyDict_Size(named) != 0) {
        PyErr_SetString(PyExc_TypeError, "VarBindPage takes no named arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "Snn", &data, &start, &end))
        return NULL;
    if (start < 0 || start > end || end > PyBytes_Size(data) || (uint64_t)end > UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "not a part of the data");
        return NULL;
    }
    Page *page = new_page(type, data, (size_t)(end - start) / SMALLEST_VARBIND);
    if (page == NULL)
        return NULL;
    size_t pos = (size_t)start;
    while (pos < (size_t)end) {
        /* What is shorter than the smallest is refused before it is written past the last place. */
        const char *wrong = read_varbind(page->bytes, (size_t)end, &pos, &page->varbinds[page->count]);
        if (wrong != NULL) {
            State *state = state_of(type);
            if (state != NULL)
                PyErr_SetString(state->malformed, wrong);
            Py_DECREF(page);
            return NULL;
        }
        page->count++;
    }
    return (PyObject *)page;
}

static void page_dealloc(Page *page)
{
    PyTypeObject *type = Py_TYPE((PyObject *)page);
    PyMem_Free(page->varbinds);
    Py_XDECREF(page->data);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(page);
    Py_DECREF(type);
}

static Py_ssize_t page_length(Page *page)
{
    return page->count;
}

static PyObject *varbind_at(Page *page, Py_ssize_t at)
{
    if (at < 0 || at >= page->count) {
        PyErr_SetString(PyExc_IndexError, "no such varbind");
        return NULL;
    }
    const VarBind *varbind = &page->varbinds[at];
    PyObject *oid = make_oid(page->bytes + varbind->oid_at, varbind->oid_size);
    if (oid == NULL)
        return NULL;
    PyObject *value = make_value(page->bytes + varbind->value_at, varbind->value_size, varbind->tag);
    /* Gives up both references, and fails if the value is NULL. */
    return Py_BuildValue("NiN", oid, (int)varbind->tag, value);
}

static PyObject *page_subscript(Page *page, PyObject *key)
{
    if (!PySlice_Check(key)) {
        Py_ssize_t at = PyNumber_AsSsize_t(key, PyExc_IndexError);
        if (at == -1 && PyErr_Occurred())
            return NULL;
        return varbind_at(page, at < 0 ? at + page->count : at);
    }
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(key, &start, &stop, &step) < 0)
        return NULL;
    Py_ssize_t count = PySlice_AdjustIndices(page->count, &start, &stop, step);
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *varbind = varbind_at(page, start + i * step);
        if (varbind == NULL || PyList_SetItem(list, i, varbind) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *page_compare(PyObject *page, PyObject *other, int operation)
{
    int is_page = PyObject_TypeCheck(other, Py_TYPE(page));
    if ((operation != Py_EQ && operation != Py_NE) || (!is_page && !PyList_Check(other)))
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *ours = PySequence_List(page);
    PyObject *theirs = ours == NULL ? NULL : PySequence_List(other);
    PyObject *answer = theirs == NULL ? NULL : PyObject_RichCompare(ours, theirs, operation);
    Py_XDECREF(ours);
    Py_XDECREF(theirs);
    return answer;
}

static PyType_Slot page_slots[] = {
    {Py_tp_doc, "VarBindPage(data, start, end)\n--\n\nThe varbinds encoded in a part of the data."},
    {Py_tp_new, page_new},
    {Py_tp_dealloc, page_dealloc},
    {Py_tp_richcompare, page_compare},
    {Py_sq_length, page_length},
    {Py_sq_item, varbind_at},
    {Py_mp_length, page_length},
    {Py_mp_subscript, page_subscript},
    {0, NULL},
};

static PyType_Spec page_spec = {
    .name = "facho.polling.snmp._pages.VarBindPage",
    .basicsize = sizeof(Page),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = page_slots,
};

/* ---- weave ---- */

static PyObject *join_data(PyObject *pages, Py_ssize_t width, PyTypeObject *page_type)
{
    /* The data of all pages, one after the other; ValueError for what is no page, or an empty one. */
    PyObject *parts = PyList_New(0);
    for (Py_ssize_t i = 0; parts != NULL && i < width; i++) {
        PyObject *each = PyTuple_GetItem(pages, i);
        int is_page = PyObject_TypeCheck(each, page_type) && ((Page *)each)->count > 0;
        if (!is_page)
            PyErr_SetString(PyExc_ValueError, "only pages with varbinds can be woven");
        if (!is_page || PyList_Append(parts, ((Page *)each)->data) < 0)
            Py_CLEAR(parts);
    }
    PyObject *nothing = parts == NULL ? NULL : PyBytes_FromStringAndSize(NULL, 0);
    PyObject *data = nothing == NULL ? NULL : PyObject_CallMethod(nothing, "join", "O", parts);
    Py_XDECREF(nothing);
    Py_XDECREF(parts);
    if (data != NULL && (uint64_t)PyBytes_Size(data) > UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "too much to be woven");
        Py_CLEAR(data);
    }
    return data;
}

static PyObject *weave(PyObject *module, PyObject *arguments)
{
    State *state = PyModule_GetState(module);
    PyObject *sequence;
    Py_ssize_t rows;
    if (!PyArg_ParseTuple(arguments, "On", &sequence, &rows))
        return NULL;
    PyObject *pages = PySequence_Tuple(sequence);
    if (pages == NULL)
        return NULL;
    Py_ssize_t width = PyTuple_Size(pages);
    PyObject *data = join_data(pages, width, state->page_type);
    Page *woven = NULL;
    if (data != NULL && rows > 0 && rows > UINT32_MAX / (width + 1))
        PyErr_SetString(PyExc_ValueError, "too much to be woven");
    else if (data != NULL)
        woven = new_page(state->page_type, data, rows > 0 ? (size_t)(rows * width) : 0);
    if (woven != NULL && rows > 0) {
        woven->count = rows * width;
        uint32_t data_at = 0;
        for (Py_ssize_t i = 0; i < width; i++) {
            const Page *page = (const Page *)PyTuple_GetItem(pages, i);
            for (Py_ssize_t row = 0; row < rows; row++) {
                VarBind varbind = page->varbinds[row < page->count ? row : page->count - 1];
                varbind.oid_at += data_at;
                varbind.value_at += data_at;
                woven->varbinds[row * width + i] = varbind;
            }
            data_at += (uint32_t)PyBytes_Size(page->data);
        }
    }
    Py_XDECREF(data);
    Py_DECREF(pages);
    return (PyObject *)woven;
}

/* ---- ColumnBuffer ---- */

static int has_room(Buffer *buffer, size_t size)
{
    if (size <= buffer->room - buffer->used)
        return 1;
    size_t room = buffer->room < 512 ? 512 : buffer->room * 2;
    while (room - buffer->used < size)
        room *= 2;
    char *items = PyMem_Realloc(buffer->items, room);
    if (items == NULL)
        return 0;
    buffer->items = items;
    buffer->room = room;
    return 1;
}

static void append(Buffer *buffer, const void *items, size_t size)
{
    /* A buffer that never had anything has no memory to copy to. */
    if (size == 0)
        return;
    memcpy(buffer->items + buffer->used, items, size);
    buffer->used += size;
}

static PyObject *column_new(PyTypeObject *type, PyObject *arguments, PyObject *named)
{
    const char *prefix;
    Py_ssize_t prefix_size;
    PyObject *after;
    if (named != NULL && PyDict_Size(named) != 0) {
        PyErr_SetString(PyExc_TypeError, "ColumnBuffer takes no named arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "y#O!", &prefix, &prefix_size, &PyTuple_Type, &after))
        return NULL;
    const char *wrong = check_oid((const uint8_t *)prefix, (size_t)prefix_size);
    Py_ssize_t after_size = PyTuple_Size(after);
    if (wrong != NULL || after_size > MAX_SUB_IDS) {
        State *state = state_of(type);
        if (state != NULL)
            PyErr_SetString(state->malformed, wrong != NULL ? wrong : "object identifier too long");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    ColumnBuffer *column = (ColumnBuffer *)allocate(type, 0);
    if (column == NULL)
        return NULL;
    memcpy(column->prefix, prefix, (size_t)prefix_size);
    column->prefix_size = (size_t)prefix_size;
    for (; column->last_size < after_size; column->last_size++) {
        unsigned long sub_id = PyLong_AsUnsignedLong(PyTuple_GetItem(after, column->last_size));
        if (sub_id > UINT32_MAX || PyErr_Occurred()) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_OverflowError, "sub-identifier over 32 bits");
            Py_DECREF(column);
            return NULL;
        }
        column->last[column->last_size] = (uint32_t)sub_id;
    }
    return (PyObject *)column;
}

static void column_dealloc(ColumnBuffer *column)
{
    PyTypeObject *type = Py_TYPE((PyObject *)column);
    PyMem_Free(column->suffix_ids.items);
    PyMem_Free(column->suffix_ends.items);
    PyMem_Free(column->tags.items);
    PyMem_Free(column->numbers.items);
    PyMem_Free(column->sizes.items);
    PyMem_Free(column->octets.items);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(column);
    Py_DECREF(type);
}

static Py_ssize_t column_length(ColumnBuffer *column)
{
    return column->count;
}

static int comes_after_last(const ColumnBuffer *column, const uint32_t *suffix, size_t size)
{
    size_t last_size = (size_t)column->last_size;
    size_t shorter = size < last_size ? size : last_size;
    for (size_t i = 0; i < shorter; i++)
        if (suffix[i] != column->last[i])
            return suffix[i] > column->last[i];
    return size > last_size;
}

static int is_number(uint8_t tag)
{
    return tag == INTEGER || tag == NOTHING || (tag >= COUNTER32 && tag <= COUNTER64 && tag != OPAQUE);
}

static int has_room_for_rows(ColumnBuffer *column, size_t rows)
{
    return has_room(&column->suffix_ends, rows * sizeof(int64_t)) && has_room(&column->tags, rows)
        && has_room(&column->numbers, rows * sizeof(int64_t)) && has_room(&column->sizes, rows * sizeof(int32_t));
}

static int add_row(ColumnBuffer *column, const uint32_t *suffix, size_t size, const Page *page, const VarBind *varbind)
{
    /* The caller has made room for what every row takes. */
    const uint8_t *value = page->bytes + varbind->value_at;
    int is_integer = is_number(varbind->tag);
    size_t octets = is_integer ? 0 : varbind->value_size;
    if (!has_room(&column->suffix_ids, size * sizeof *suffix) || !has_room(&column->octets, octets))
        return -1;
    append(&column->suffix_ids, suffix, size * sizeof *suffix);
    int64_t suffix_end = (int64_t)(column->suffix_ids.used / sizeof *suffix);
    /* A NULL is a value that did not come. */
    uint8_t tag = varbind->tag == NOTHING ? NO_VALUE : varbind->tag;
    int64_t number = is_integer ? read_number(value, varbind->value_size, tag == INTEGER) : (int64_t)column->octets.used;
    int32_t value_size = is_integer ? IS_INTEGER : (int32_t)octets;
    append(&column->suffix_ends, &suffix_end, sizeof suffix_end);
    append(&column->tags, &tag, sizeof tag);
    append(&column->numbers, &number, sizeof number);
    append(&column->sizes, &value_size, sizeof value_size);
    append(&column->octets, value, octets);
    memcpy(column->last, suffix, size * sizeof *suffix);
    column->last_size = (Py_ssize_t)size;
    column->count++;
    return 0;
}

static PyObject *column_take(ColumnBuffer *column, PyTypeObject *type, PyObject *const *arguments, Py_ssize_t count,
                             PyObject *names)
{
    State *state = state_of(type);
    if (state == NULL)
        return NULL;
    if (count != 3 || names != NULL || !PyObject_TypeCheck(arguments[0], state->page_type)) {
        PyErr_SetString(PyExc_TypeError, "take(page, position, width)");
        return NULL;
    }
    const Page *page = (const Page *)arguments[0];
    Py_ssize_t position = PyLong_AsSsize_t(arguments[1]), width = PyLong_AsSsize_t(arguments[2]);
    if (PyErr_Occurred())
        return NULL;
    if (position < 0 || width < 1) {
        PyErr_SetString(PyExc_ValueError, "a column has a position and a width");
        return NULL;
    }
    if (position < page->count && !has_room_for_rows(column, (size_t)((page->count - position - 1) / width + 1)))
        return PyErr_NoMemory();
    uint32_t suffix[MAX_SUB_IDS];
    for (Py_ssize_t at = position; at < page->count; at = width < page->count - at ? at + width : page->count) {
        const VarBind *varbind = &page->varbinds[at];
        const uint8_t *oid = page->bytes + varbind->oid_at;
        size_t skipped = column->prefix_size;
        if (varbind->tag >= NO_SUCH_OBJECT || varbind->oid_size < skipped || memcmp(oid, column->prefix, skipped) != 0)
            return PyLong_FromSsize_t(at);
        size_t size = read_sub_ids(oid + skipped, varbind->oid_size - skipped, suffix);
        if (!comes_after_last(column, suffix, size))
            return PyLong_FromSsize_t(at);
        if (add_row(column, suffix, size, page, varbind) < 0)
            return PyErr_NoMemory();
    }
    return PyLong_FromLong(-1);
}

static PyObject *bytes_of(const Buffer *buffer)
{
    return PyBytes_FromStringAndSize(buffer->items, (Py_ssize_t)buffer->used);
}

static PyObject *column_buffers(ColumnBuffer *column, PyObject *Py_UNUSED(nothing))
{
    return Py_BuildValue("NNNNNN", bytes_of(&column->suffix_ids), bytes_of(&column->suffix_ends),
                         bytes_of(&column->tags), bytes_of(&column->numbers), bytes_of(&column->sizes),
                         bytes_of(&column->octets));
}

static PyObject *column_last(ColumnBuffer *column, void *Py_UNUSED(nothing))
{
    return make_tuple(column->last, column->last_size);
}

static PyObject *column_sub_ids(ColumnBuffer *column, void *Py_UNUSED(nothing))
{
    return PyLong_FromSize_t(column->suffix_ids.used / sizeof(uint32_t));
}

static PyMethodDef column_methods[] = {
    {"take", (PyCFunction)(void (*)(void))column_take, METH_METHOD | METH_FASTCALL | METH_KEYWORDS,
     "Add the varbinds position, position + width, … of a page while they are the next rows of the column."},
    {"buffers", (PyCFunction)column_buffers, METH_NOARGS, "Return the arrays of the rows as bytes."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef column_properties[] = {
    {"last", (getter)column_last, NULL, "The suffix of the last row.", NULL},
    {"sub_ids", (getter)column_sub_ids, NULL, "How many numbers the suffixes have in all.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot column_slots[] = {
    {Py_tp_doc, "ColumnBuffer(prefix, after)\n--\n\nThe rows of one column as they come, in arrays."},
    {Py_tp_new, column_new},
    {Py_tp_dealloc, column_dealloc},
    {Py_sq_length, column_length},
    {Py_tp_methods, column_methods},
    {Py_tp_getset, column_properties},
    {0, NULL},
};

static PyType_Spec column_spec = {
    .name = "facho.polling.snmp._pages.ColumnBuffer",
    .basicsize = sizeof(ColumnBuffer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = column_slots,
};

/* ---- encode_questions ---- */

static uint8_t *put_length(uint8_t *at, size_t size)
{
    if (size >= 0x100) {
        *at++ = 0x82;
        *at++ = (uint8_t)(size >> 8);
    }
    else if (size >= 0x80)
        *at++ = 0x81;
    *at++ = (uint8_t)size;
    return at;
}

static size_t length_bytes(size_t size)
{
    return size < 0x80 ? 1 : size < 0x100 ? 2 : 3;
}

static int put_oid(PyObject *oid, uint8_t *encoded, size_t *size)
{
    uint32_t sub_ids[MAX_SUB_IDS];
    Py_ssize_t count = PyTuple_Check(oid) ? PyTuple_Size(oid) : 0;
    int is_oid = count >= 2 && count <= MAX_SUB_IDS;
    for (Py_ssize_t i = 0; is_oid && i < count; i++) {
        unsigned long sub_id = PyLong_AsUnsignedLong(PyTuple_GetItem(oid, i));
        is_oid = !(sub_id == (unsigned long)-1 && PyErr_Occurred()) && sub_id <= UINT32_MAX;
        sub_ids[i] = (uint32_t)sub_id;
    }
    /* The first two are encoded as one number of 32 bits. */
    if (!is_oid || sub_ids[0] > 2 || (sub_ids[0] < 2 && sub_ids[1] > 39) || sub_ids[1] > UINT32_MAX - 80) {
        PyErr_SetString(PyExc_ValueError, "not an object identifier");
        return -1;
    }
    sub_ids[1] += 40 * sub_ids[0];
    uint8_t *at = encoded;
    for (Py_ssize_t i = 1; i < count; i++) {
        for (int shift = 28; shift > 0; shift -= 7)
            if (sub_ids[i] >> shift)
                *at++ = (uint8_t)(sub_ids[i] >> shift | 0x80);
        *at++ = sub_ids[i] & 0x7f;
    }
    *size = (size_t)(at - encoded);
    return 0;
}

static PyObject *encode_questions(PyObject *Py_UNUSED(module), PyObject *oids)
{
    PyObject *sequence = PySequence_Tuple(oids);
    if (sequence == NULL)
        return NULL;
    Buffer questions = {NULL, 0, 0};
    PyObject *encoded = NULL;
    Py_ssize_t count = PyTuple_Size(sequence);
    for (Py_ssize_t i = 0; i < count; i++) {
        uint8_t oid[MAX_OID_BYTES], head[8], *at = head;
        size_t size;
        if (put_oid(PyTuple_GetItem(sequence, i), oid, &size) < 0)
            goto done;
        *at++ = SEQUENCE;
        at = put_length(at, 1 + length_bytes(size) + size + 2);
        *at++ = OBJECT_IDENTIFIER;
        at = put_length(at, size);
        if (!has_room(&questions, (size_t)(at - head) + size + 2)) {
            PyErr_NoMemory();
            goto done;
        }
        append(&questions, head, (size_t)(at - head));
        append(&questions, oid, size);
        append(&questions, (const uint8_t[]){NOTHING, 0}, 2);
    }
    encoded = bytes_of(&questions);
done:
    PyMem_Free(questions.items);
    Py_DECREF(sequence);
    return encoded;
}

/* ---- The module ---- */

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type != NULL && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

static int module_exec(PyObject *module)
{
    State *state = PyModule_GetState(module);
    PyObject *errors = PyImport_ImportModule("facho.polling.snmp.errors");
    if (errors == NULL)
        return -1;
    state->malformed = PyObject_GetAttrString(errors, "MalformedMessage");
    Py_DECREF(errors);
    if (state->malformed == NULL)
        return -1;
    state->page_type = add_type(module, &page_spec);
    state->column_type = state->page_type == NULL ? NULL : add_type(module, &column_spec);
    return state->column_type == NULL ? -1 : 0;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->page_type);
    Py_VISIT(state->column_type);
    Py_VISIT(state->malformed);
    return 0;
}

static int module_clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->page_type);
    Py_CLEAR(state->column_type);
    Py_CLEAR(state->malformed);
    return 0;
}

static PyMethodDef module_methods[] = {
    {"encode_questions", encode_questions, METH_O, "Encode OIDs without values, as in requests."},
    {"weave", weave, METH_VARARGS, "Return rows made of one varbind of each page in turn."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_pages",
    .m_doc = "The decoder of answers, compiled.",
    .m_size = sizeof(State),
    .m_methods = module_methods,
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
};

PyMODINIT_FUNC PyInit__pages(void)
{
    return PyModuleDef_Init(&module_definition);
}
