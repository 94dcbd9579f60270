package faults

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// watch is one that is in progress.
type watch struct {
	path string
	cut  context.CancelFunc
}

// CutWatches breaks all watches in progress, in the middle of what they
// say.
func (p *Proxy) CutWatches() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for watch := range p.watches {
		watch.cut()
	}
}

// ExpireWatches breaks all watches in progress, and once refuses to take
// each of them up again where it was: the resource version is too old, as it is
// when etcd was compacted meanwhile.
func (p *Proxy) ExpireWatches() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for watch := range p.watches {
		p.expired[watch.path] = true
		watch.cut()
	}
}

// follow makes watches breakable.
func (p *Proxy) follow(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !requestOf(r).Watch {
			next.ServeHTTP(w, r)
			return
		}
		if p.tooOld(r) {
			refuse(w, apierrors.NewResourceExpired("too old resource version: 1 (2)").Status())
			return
		}
		ctx, cut := context.WithCancel(r.Context())
		defer cut()
		defer p.begin(&watch{path: r.URL.Path, cut: cut})()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// begin keeps a watch, and returns what to call when it has ended.
func (p *Proxy) begin(begun *watch) (ended func()) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.watches[begun] = true
	return func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		delete(p.watches, begun)
	}
}

// tooOld is true, once, for a watch that continues an expired one.
func (p *Proxy) tooOld(r *http.Request) bool {
	version := r.URL.Query().Get("resourceVersion")
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if version == "" || version == "0" || !p.expired[r.URL.Path] {
		return false
	}
	delete(p.expired, r.URL.Path)
	return true
}
