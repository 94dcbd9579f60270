// Package gathering answers: how is an archive made from which checks read what they would read
// from the cluster?
//
// [Gather] makes the requests that checks declare, and writes the objects in the layout of "oc adm
// inspect", with an inventory.Collection beside them: which objects do not exist, and which could
// not be read. What the monitoring reports is there, too.
//
// Lists are read in pages and written object by object, so that the memory which it takes does not
// grow with the cluster. Values of Secrets are never written, and neither are the environment, the
// commands and the arguments of the containers of pods, which no check reads.
package gathering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/archive/redaction"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/words"
)

// Request is what to gather.
type Request struct {
	// Reads are requests as checks declare them; those with other verbs than get and list are
	// ignored.
	Reads []access.Request
	// Monitoring is the monitoring of the cluster; nil gathers nothing of it.
	Monitoring *monitoring.Client
	// Redact replaces the names of nodes, IP addresses and domains (package redaction).
	Redact bool
	// Step reports what is done next.
	Step func(string)
}

// Files is where the archive is written, file by file.
type Files interface {
	io.Writer
	Begin(name string) error
	End() error
	// Drop leaves the current file out.
	Drop() error
}

// Summary is what was gathered.
type Summary struct {
	ClusterID string
	// Time is that of the archive, by the cluster's clock.
	Time    time.Time
	Objects int
	// Missing could not be read. What does not exist is not missing.
	Missing []gap.Gap
	// Kept are names of nodes that redaction has left, since they are ordinary words.
	Kept []string
}

// maxMissing bounds what is listed as missing.
const maxMissing = 1000

// gatherer gathers once.
type gatherer struct {
	cluster *cluster.Cluster
	request Request
	files   Files
	index   inventory.Collection
	objects int
	// names replaces names; nil where nothing is redacted.
	names *redaction.Names
	api   api
}

// Gather writes the archive of a cluster. What cannot be read is in the summary; an error means
// that the cluster cannot be reached, or that the archive cannot be written.
func Gather(ctx context.Context, c *cluster.Cluster, request Request, files Files) (Summary, error) {
	g := &gatherer{cluster: c, request: request, files: files}
	g.request.Step("reading which APIs the cluster serves")
	info, err := c.Kubernetes.Discovery().ServerVersion()
	if err != nil {
		return Summary{}, fmt.Errorf("could not reach the API server: %w", err)
	}
	g.index.Version = *info
	if g.api, err = discoverAPI(c.Kubernetes.Discovery()); err != nil {
		return Summary{}, err
	}
	id, monitored, err := g.identify(ctx)
	if err != nil {
		return Summary{}, err
	}
	for _, each := range readingsOf(request.Reads) {
		if err := g.read(ctx, each); err != nil {
			return Summary{}, err
		}
	}
	if err := errors.Join(g.readMetrics(ctx), g.readMonitoring(ctx, monitored)); err != nil {
		return Summary{}, err
	}
	g.index.Time, g.index.Redacted = c.Now(), request.Redact
	summary := Summary{ClusterID: id, Time: g.index.Time, Objects: g.objects, Missing: g.index.Missing}
	if g.names != nil {
		summary.Kept = g.names.Kept()
	}
	return summary, g.writeIndex()
}

// read gathers what one request reads.
func (g *gatherer) read(ctx context.Context, r reading) error {
	found, err := g.api.find(r.resource)
	key := r.resource.String()
	switch {
	case err != nil:
		g.miss(r, err)
		return nil
	case found == nil:
		if !slices.Contains(g.index.Unserved, key) {
			g.index.Unserved = append(g.index.Unserved, key)
		}
		return nil
	}
	g.request.Step("reading " + key)
	failed := g.get
	if r.name == "" {
		failed = g.list
	}
	if err := failed(ctx, r, found); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, ours := errors.AsType[*writeError](err); ours {
			return err
		}
		g.note(r, err)
	}
	return nil
}

// note states why what a request reads is not in the archive.
func (g *gatherer) note(r reading, err error) {
	switch {
	case apierrors.IsNotFound(err) && r.name != "":
		g.index.Nonexistent = append(g.index.Nonexistent, g.text(r.resource.Object(r.namespace, r.name)))
	case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
		g.index.Unserved = append(g.index.Unserved, r.resource.String())
	default:
		g.miss(r, err)
	}
}

func (g *gatherer) miss(r reading, err error) {
	if len(g.index.Missing) < maxMissing {
		g.index.Missing = append(g.index.Missing, gap.Gap{
			Group: r.resource.Group, Resource: r.resource.Name, Namespace: r.namespace, Name: r.name, Cause: g.text(words.Line(err.Error(), maxCause)),
		})
	}
}

// maxCause bounds an error, in bytes.
const maxCause = 500

// text is a text as the archive has it.
func (g *gatherer) text(text string) string {
	if g.names == nil {
		return text
	}
	return g.names.Text(text)
}

// writeIndex writes the collection.
func (g *gatherer) writeIndex() error {
	slices.Sort(g.index.Complete)
	slices.Sort(g.index.Unserved)
	content, err := json.MarshalIndent(g.index, "", "  ")
	if err != nil {
		return err
	}
	return g.write(inventory.CollectionFile, append(content, '\n'))
}

// write writes a whole file.
func (g *gatherer) write(name string, content []byte) error {
	if err := g.files.Begin(name); err != nil {
		return &writeError{err}
	}
	if _, err := g.files.Write(content); err != nil {
		return &writeError{errors.Join(err, g.files.Drop())}
	}
	if err := g.files.End(); err != nil {
		return &writeError{err}
	}
	return nil
}

// writeError is an error of the archive, and not of the cluster.
type writeError struct{ err error }

func (e *writeError) Error() string { return "the archive cannot be written: " + e.err.Error() }

func (e *writeError) Unwrap() error { return e.err }

// reading is what to read: one object, or all of a namespace, or all.
type reading struct {
	resource        inventory.Resource
	namespace, name string
}

// readingsOf are the readings of requests, each once, and none that another one includes. The
// configuration of the cluster comes first: it shows which domains there are.
func readingsOf(requests []access.Request) []reading {
	var wanted []access.Request
	for _, each := range requests {
		lists := each.Verb == "list"
		if lists && each.Name != "" {
			each.Verb = "get"
		}
		if (lists || each.Verb == "get" && each.Name != "") && each.Subresource == "" {
			wanted = append(wanted, each)
		}
	}
	var readings []reading
	for _, each := range access.Essential(wanted) {
		listed := each
		listed.Verb, listed.Name = "list", ""
		if each.Verb == "get" && slices.ContainsFunc(wanted, func(wider access.Request) bool { return access.Includes(wider, listed) }) {
			continue
		}
		readings = append(readings, reading{inventory.Resource{Group: each.Group, Name: each.Resource}, each.Namespace, each.Name})
	}
	slices.SortStableFunc(readings, func(a, b reading) int { return rank(a) - rank(b) })
	return readings
}

func rank(r reading) int {
	if strings.HasSuffix(r.resource.Group, "openshift.io") {
		return 0
	}
	return 1
}
