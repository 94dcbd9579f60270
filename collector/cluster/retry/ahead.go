package retry

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// spare is used for one body after another: a page of a list has megabytes, and a list many pages. A sync.Pool
// would often have none, since it has one for each processor.
var spare atomic.Pointer[bytes.Buffer] //nolint:gochecknoglobals // a cache

// maxSpare bounds the memory that is kept for the next body, in bytes: that of a page of 500 pods.
const maxSpare = 8 << 20

// Ahead reads the first bytes of the body of a response, at most limit, and restores it. They are valid until
// the body is closed.
func Ahead(response *http.Response, limit int64) ([]byte, error) {
	if of, ok := response.Body.(*ahead); ok && of.ended {
		return of.unread.Bytes(), nil // nothing has read or closed it
	}
	into := spare.Swap(nil)
	if into == nil {
		into = &bytes.Buffer{}
	}
	into.Reset()
	_, err := into.ReadFrom(io.LimitReader(response.Body, limit))
	response.Body = &ahead{unread: into, rest: response.Body, ended: err == nil && int64(into.Len()) < limit}
	return into.Bytes(), err
}

type ahead struct {
	rest io.ReadCloser
	// ended is true where the beginning is all.
	ended bool

	mutex sync.Mutex // since a body may be closed while it is read
	// unread is the part of the beginning that was not read yet; nil for a closed body.
	unread *bytes.Buffer
}

func (a *ahead) Read(into []byte) (int, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	switch {
	case a.unread == nil:
		return 0, http.ErrBodyReadAfterClose
	case a.unread.Len() > 0:
		return a.unread.Read(into)
	case a.ended:
		return 0, io.EOF
	}
	return a.rest.Read(into)
}

// Close implements io.Closer. The buffer is given back once.
func (a *ahead) Close() error {
	err := a.rest.Close() // which ends a Read that waits
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.unread != nil && a.unread.Cap() <= maxSpare {
		spare.Store(a.unread)
	}
	a.unread = nil
	return err
}
