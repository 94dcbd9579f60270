package faults

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault returns a handler that disturbs the requests to next, or the responses to them.
type Fault func(next http.Handler) http.Handler

// Slow delays each request by a duration.
func Slow(by time.Duration) Fault {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			timer := time.NewTimer(by)
			defer timer.Stop()
			select {
			case <-timer.C:
				next.ServeHTTP(w, r)
			case <-r.Context().Done():
			}
		})
	}
}

// Busy rejects every n-th request, the first one included, with 429 and "Retry-After: 1",
// as an overloaded API server does.
func Busy(n int) Fault {
	return everyNth(n, func(w http.ResponseWriter) {
		status := apierrors.NewTooManyRequests("too many requests, please try again later", 1).Status()
		w.Header().Set("Retry-After", "1")
		refuse(w, status)
	})
}

// Unavailable rejects every n-th request, the first one included, with 503 and without
// Retry-After, as a load balancer does while its API server restarts.
func Unavailable(n int) Fault {
	return everyNth(n, func(w http.ResponseWriter) {
		refuse(w, apierrors.NewServiceUnavailable("the server is currently unable to handle the request").Status())
	})
}

func everyNth(n int, reject func(http.ResponseWriter)) Fault {
	return func(next http.Handler) http.Handler {
		var count atomic.Int64
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if (count.Add(1)-1)%int64(n) == 0 {
				reject(w)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// Moment is the time of a fault relative to the execution of a write.
type Moment string

// The moments of a write.
const (
	// Before: the API server does not receive the write.
	Before Moment = "before"
	// After: the API server has executed the write; the client receives no response.
	After Moment = "after"
)

// Clock shifts the Date header of responses: to the client, its own clock differs from
// that of the API server by the opposite of the duration.
func Clock(by time.Duration) Fault {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(clockWriter{w, by}, r)
		})
	}
}

type clockWriter struct {
	http.ResponseWriter

	by time.Duration
}

// WriteHeader implements http.ResponseWriter.
func (c clockWriter) WriteHeader(code int) {
	c.Header().Set("Date", time.Now().Add(c.by).UTC().Format(http.TimeFormat))
	c.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (c clockWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// AtWrite calls hook before or after a write, which is named as in [Request], and
// then breaks the client's connection. A hook that kills the client does so at exactly
// this write, whatever other requests are in progress.
func AtWrite(write string, moment Moment, hook func()) Fault {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requestOf(r).Write != write {
				next.ServeHTTP(w, r)
				return
			}
			if moment == After {
				next.ServeHTTP(httptest.NewRecorder(), r)
			}
			hook()
			lose()
		})
	}
}

// lose breaks the connection of a request, without a response.
func lose() { panic(http.ErrAbortHandler) }

// Lossy breaks the connection of each write once, before the API server receives it or
// after it has executed it. The next write of the same method and path passes. Error
// responses of the API server are not lost.
func Lossy(moment Moment) Fault {
	return func(next http.Handler) http.Handler {
		l := &lossy{next: next}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case requestOf(r).Write == "":
				next.ServeHTTP(w, r)
			case moment == Before:
				l.loseRequest(w, r)
			default:
				l.loseResponse(w, r)
			}
		})
	}
}

// ShortReads ends the first response to each read in the middle of its body, and breaks
// its connection. Watches are not affected.
func ShortReads() Fault {
	return func(next http.Handler) http.Handler {
		var cut sync.Map // path and query of each read whose repetition passes
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || requestOf(r).Watch {
				next.ServeHTTP(w, r)
				return
			}
			if _, passes := cut.LoadOrStore(r.URL.String(), true); passes {
				next.ServeHTTP(w, r)
				return
			}
			response := httptest.NewRecorder()
			next.ServeHTTP(response, r)
			response.Body.Truncate(response.Body.Len() / 2)
			response.Header().Del("Content-Length")
			forward(response, w)
			_ = http.NewResponseController(w).Flush() // the client may have closed the connection
			lose()
		})
	}
}

type lossy struct {
	next http.Handler
	lost sync.Map // method and path of each write whose repetition passes
}

func (l *lossy) loseRequest(w http.ResponseWriter, r *http.Request) {
	key := r.Method + " " + r.URL.Path
	if _, passes := l.lost.LoadAndDelete(key); !passes {
		l.lost.Store(key, true)
		lose()
	}
	l.next.ServeHTTP(w, r)
}

func (l *lossy) loseResponse(w http.ResponseWriter, r *http.Request) {
	key := r.Method + " " + r.URL.Path
	response := httptest.NewRecorder()
	l.next.ServeHTTP(response, r)
	if response.Code < http.StatusBadRequest {
		if _, passes := l.lost.LoadAndDelete(key); !passes {
			l.lost.Store(key, true)
			lose()
		}
	}
	forward(response, w)
}

// forward writes a recorded response.
func forward(response *httptest.ResponseRecorder, w http.ResponseWriter) {
	maps.Copy(w.Header(), response.Header())
	w.WriteHeader(response.Code)
	_, _ = response.Body.WriteTo(w) // the client may have closed the connection
}

// refuse responds with a Status, as an API server does.
func refuse(w http.ResponseWriter, status metav1.Status) {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // the client may have closed the connection
}
