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

// Fault is something that goes wrong with requests on their way to next.
type Fault func(next http.Handler) http.Handler

// Slow has every answer begin later.
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

// Busy answers every n-th request, the first one included, with 429 and the wish to be asked again in a
// second, as an API server does that has too much to do.
func Busy(n int) Fault {
	return everyNth(n, func(w http.ResponseWriter) {
		status := apierrors.NewTooManyRequests("too many requests, please try again later", 1).Status()
		w.Header().Set("Retry-After", "1")
		refuse(w, status)
	})
}

// Unavailable answers every n-th request, the first one included, with 503 and no advice, as what stands
// before an API server does while that restarts.
func Unavailable(n int) Fault {
	return everyNth(n, func(w http.ResponseWriter) {
		refuse(w, apierrors.NewServiceUnavailable("the server is currently unable to handle the request").Status())
	})
}

func everyNth(n int, answer func(http.ResponseWriter)) Fault {
	return func(next http.Handler) http.Handler {
		var count atomic.Int64
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if (count.Add(1)-1)%int64(n) == 0 {
				answer(w)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// Moment is when something happens to a write.
type Moment string

// The moments of a write.
const (
	// Before: the API server never hears of it.
	Before Moment = "before"
	// After: the API server has done it, and the client never hears of that.
	After Moment = "after"
)

// Clock has the clock of the API server differ by a duration, as the client sees it: the
// clock of the client differs by its opposite. Only the headers of responses change.
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

// AtWrite calls hook at a moment of a write, which is named as in [Request], and
// then breaks the client's connection. A hook that kills the client makes this
// the moment of its death, however many others of its requests are in progress.
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

// lose breaks the connection that a request came on, without an answer.
func lose() { panic(http.ErrAbortHandler) }

// Lossy loses each write once, before it arrives or after it was done; the
// connection breaks. The next one of its kind and place passes. What the API
// server refuses is not lost on the way back.
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
				l.loseAnswer(w, r)
			}
		})
	}
}

type lossy struct {
	next http.Handler
	lost sync.Map // by method and path, while the next one is to pass
}

func (l *lossy) loseRequest(w http.ResponseWriter, r *http.Request) {
	key := r.Method + " " + r.URL.Path
	if _, passes := l.lost.LoadAndDelete(key); !passes {
		l.lost.Store(key, true)
		lose()
	}
	l.next.ServeHTTP(w, r)
}

func (l *lossy) loseAnswer(w http.ResponseWriter, r *http.Request) {
	key := r.Method + " " + r.URL.Path
	answer := httptest.NewRecorder()
	l.next.ServeHTTP(answer, r)
	if answer.Code < http.StatusBadRequest {
		if _, passes := l.lost.LoadAndDelete(key); !passes {
			l.lost.Store(key, true)
			lose()
		}
	}
	pass(answer, w)
}

// pass hands on an answer that was kept.
func pass(answer *httptest.ResponseRecorder, w http.ResponseWriter) {
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = answer.Body.WriteTo(w) // a client that has gone does not hear it
}

// refuse answers as an API server does.
func refuse(w http.ResponseWriter, status metav1.Status) {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // a client that has gone does not hear it
}
