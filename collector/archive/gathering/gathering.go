// Package gathering answers: how is an archive made from which checks read what they would read
// from the cluster?
//
// [Gather] makes the requests that checks declare, and writes the objects in the layout of "oc adm
// inspect", with an inventory.Collection beside them: which objects do not exist, and which could
// not be read. What the monitoring reports is there, too.
//
// Lists are read in pages and written object by object, so that the memory which it takes does not
// grow with the cluster. Of each object the fields are written that checks read (package reduction), and
// never values of Secrets or user info of URLs. What is redacted is read as a whole before it is written,
// since each object may show what must be replaced in all others; until then it is on the disk.
package gathering

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/archive/reduction"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/words"
)

// Options select what to gather, and how it is written.
type Options struct {
	// Reads are requests as checks declare them; those with other verbs than get and list are ignored.
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
	// Scratch is an empty file that is not part of the archive.
	Scratch() (*os.File, error)
}

// Summary is what was gathered.
type Summary struct {
	ClusterID string
	// Time of the archive, by the cluster's clock.
	Time    time.Time
	Objects int
	// Missing could not be read. What does not exist is not missing.
	Missing []gap.Gap
	// Kept are names of nodes and domains that redaction has left, since they are ordinary words or
	// parts of API groups.
	Kept []string
}

// maxMissing bounds what is listed as missing.
const maxMissing = 1000

type gatherer struct {
	cluster *cluster.Cluster
	request Options
	reducer *reduction.Reducer
	// out is the archive, and into where objects go: what is redacted, to a spool first.
	out     *output
	into    destination
	spool   *spool
	objects int
	// alerts of the monitoring; nil for none.
	alerts json.RawMessage
	api    api
	// reported is the last step that was reported.
	reported string
}

func (g *gatherer) step(text string) {
	if text != g.reported {
		g.reported = text
		g.request.Step(text)
	}
}

// Gather writes the archive of a cluster. What cannot be read is in the summary; an error means
// that the cluster cannot be reached, or that the archive cannot be written.
func Gather(ctx context.Context, c *cluster.Cluster, request Options, files Files) (Summary, error) {
	out := &output{files: files}
	g := &gatherer{cluster: c, request: request, reducer: reduction.New(request.Reads), out: out, into: out}
	g.step("reading which APIs the cluster serves")
	info, err := discovery.ToServerVersionInterfaceWithContext(c.Kubernetes.Discovery()).ServerVersionWithContext(ctx)
	if err != nil {
		return Summary{}, fmt.Errorf("could not reach the API server: %w", err)
	}
	out.index.Version = *info
	if g.api, err = discoverAPI(ctx, c.Kubernetes.Discovery()); err != nil {
		return Summary{}, err
	}
	id, monitored, err := g.identify(ctx)
	if err != nil {
		return Summary{}, err
	}
	for _, each := range readingsOf(g.api.each(request.Reads)) {
		if err := g.read(ctx, each); err != nil {
			return Summary{}, err
		}
	}
	if err := errors.Join(g.readMetrics(ctx), g.readMonitoring(ctx, monitored)); err != nil {
		return Summary{}, err
	}
	out.index.Time, out.index.Redacted = c.Now(), request.Redact
	if err := g.replaceNames(); err != nil {
		return Summary{}, err
	}
	if err := errors.Join(out.writeAlerts(g.alerts), out.writeIndex()); err != nil {
		return Summary{}, err
	}
	summary := Summary{ClusterID: id, Time: out.index.Time, Objects: g.objects, Missing: out.index.Missing}
	if out.names != nil {
		summary.Kept = out.names.Kept()
	}
	return summary, nil
}

// replaceNames writes what was read, once all names are known. Nothing is done where none is replaced.
func (g *gatherer) replaceNames() error {
	if g.spool == nil {
		return nil
	}
	g.step("replacing the names")
	g.spool.names.Learn(g.out.index.Metrics)
	return g.spool.replay(g.out)
}

func (g *gatherer) read(ctx context.Context, r reading) error {
	found, err := g.api.find(r.resource)
	key := r.resource.String()
	switch {
	case err != nil:
		g.miss(r, err)
		return nil
	case found == nil:
		if !slices.Contains(g.out.index.Unserved, key) {
			g.out.index.Unserved = append(g.out.index.Unserved, key)
		}
		return nil
	}
	g.step("reading " + key)
	gather := g.get
	if r.name == "" {
		gather = g.getAll
	}
	if err := gather(ctx, source{r, found}); err != nil {
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
		g.out.index.Nonexistent = append(g.out.index.Nonexistent, r.resource.Object(r.namespace, r.name))
	case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
		g.out.index.Unserved = append(g.out.index.Unserved, r.resource.String())
	default:
		g.miss(r, err)
	}
}

func (g *gatherer) miss(r reading, err error) {
	if len(g.out.index.Missing) >= maxMissing {
		return
	}
	cause := words.Line(err.Error(), maxCause)
	if g.out.names != nil {
		g.out.names.Learn(cause)
	}
	g.out.index.Missing = append(g.out.index.Missing, gap.Gap{Group: r.resource.Group, Resource: r.resource.Name, Namespace: r.namespace, Name: r.name, Cause: cause})
}

// maxCause bounds an error, in bytes.
const maxCause = 500

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
