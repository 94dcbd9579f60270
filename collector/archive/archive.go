// Package archive answers: how is an archive of a cluster read as if it were the cluster?
//
// [Open] reads a must-gather, the tree of "oc adm inspect", an archive of the insights-operator or
// files of lists, and [Archive.Config] is the configuration by which clients reach it. It only
// reads, and its clock shows the newest time of the archive; without a time in it, that of this machine.
//
// An answer is complete, partial or absent. A response that lacks objects states so by
// [gap.Gap.Header]; a request for objects that were not gathered fails with [gap.Reason], and
// never with NotFound, which the archive must prove: by a list without the object, or by the APIs
// that the cluster served.
package archive

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/gap"
)

const (
	// host is the name by which clients address an archive. It never leaves the process.
	host = "https://archive.invalid"
	// maxRequest bounds the body of a request, in bytes.
	maxRequest = 1 << 20
)

// Archive answers requests as the API server of the cluster would, without a network.
type Archive struct{ state *inventory.Inventory }

// Open reads the archives of one cluster, each a directory or a file. A path may continue within
// a file. Where there are several clusters, or none, the error lists what was found.
func Open(ctx context.Context, paths ...string) (*Archive, error) {
	state, err := inventory.Open(ctx, paths...)
	if err != nil {
		return nil, err
	}
	return &Archive{state: state}, nil
}

// OpenHosted reads both clusters of a dump of HyperShift: the management cluster, and the guest of the
// hosted cluster of that name, nil where the dump has none.
func OpenHosted(ctx context.Context, name string, paths ...string) (management, guest *Archive, err error) {
	above, below, err := inventory.OpenHosted(ctx, name, paths...)
	if err != nil {
		return nil, nil, err
	}
	management = &Archive{state: above}
	if below != nil {
		guest = &Archive{state: below}
	}
	return management, guest, nil
}

// About is the identity of the archive, and what of it could not be read so far.
func (a *Archive) About() inventory.About { return a.state.About() }

// Now is the time as of which the archive is judged: its newest, or that of this machine where it has
// none. That is later, so that what has an end has ended.
func (a *Archive) Now() time.Time {
	if newest := a.state.About().Time; !newest.IsZero() {
		return newest
	}
	return time.Now().UTC()
}

// Config is the configuration of clients of the archive.
func (a *Archive) Config() *rest.Config { return &rest.Config{Host: host, Transport: a} }

type answer struct {
	code int
	body []byte
	gaps []gap.Gap
}

// RoundTrip implements http.RoundTripper.
func (a *Archive) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		defer request.Body.Close() //nolint:errcheck // a body in memory
	}
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	answered, err := a.answer(request)
	if err != nil {
		answered = failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), gap.Gap{})
	}
	response := &http.Response{
		Status: strconv.Itoa(answered.code) + " " + http.StatusText(answered.code), StatusCode: answered.code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: request, ContentLength: int64(len(answered.body)),
	}
	if request.Method != http.MethodHead {
		response.Body = io.NopCloser(bytes.NewReader(answered.body))
	}
	response.Header.Set("Content-Type", "application/json")
	response.Header.Set("Date", a.Now().Format(http.TimeFormat))
	for _, each := range answered.gaps {
		header, err := each.Header()
		if err != nil {
			return nil, fmt.Errorf("the gap %s cannot be stated: %w", each, err)
		}
		response.Header.Add("Warning", header)
	}
	return response, nil
}

func (a *Archive) answer(request *http.Request) (answer, error) {
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if request.Method == http.MethodPost && len(path) == 4 && path[1] == "authorization.k8s.io" && request.Body != nil {
		return review(path[3], io.LimitReader(request.Body, maxRequest))
	}
	switch {
	case request.Method != http.MethodGet && request.Method != http.MethodHead:
		return failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "an archive can only be read", gap.Gap{}), nil
	case len(path) == 1, len(path) == 2 && path[0] == "api", len(path) <= 3 && path[0] == "apis":
		return a.discover(path), nil
	case path[0] == "api" && len(path) > 7 && path[4] == "services" && path[6] == "proxy":
		return a.monitoring(path[7:], request.URL.Query())
	case path[0] == "api":
		return a.objects(target{version: path[1]}, path[2:], request)
	case path[0] == "apis":
		return a.objects(target{resource: resource{Group: path[1]}, version: path[2]}, path[3:], request)
	}
	return absent(gap.Gap{Resource: request.URL.Path}), nil
}
