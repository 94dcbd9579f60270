package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/graph"
	"github.com/openshift/update-preflight/collector/imageset"
	"github.com/openshift/update-preflight/collector/path"
	"github.com/openshift/update-preflight/collector/rollout"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/runner/cache"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/updateservice"
)

// PlanRequest is what to plan.
type PlanRequest struct {
	// From is the release to start from, without a cluster; empty for that of the
	// cluster.
	From string
	// Target is where to go to.
	Target updateplan.Target
	// Channels are those of the update service; none for that of the cluster.
	Channels []string
	// Files are graphs, and Services the URLs of update services; without both, the update
	// service of the cluster, or else the public one, is used.
	Files    []GraphFile
	Services []string
	// Graphs stores the responses of update services; nil stores none. A graph that is stored
	// for at most ten minutes is used instead of a request.
	Graphs GraphStore
	// Offline uses the graphs of Graphs instead of requesting them.
	Offline bool
	// Architecture is by the name that update services use; empty for that of the
	// cluster or, without one, of this program.
	Architecture string
	// ImageSet is the format of ImageSetConfigurations; empty for V2.
	ImageSet imageset.Format
	// Stored is a plan to compare with, whose target is the target; nil for none.
	Stored *updateplan.Plan
}

// GraphStore stores graphs of update services.
type GraphStore interface {
	// Put stores a graph that was received at that time.
	Put(key cache.GraphKey, received time.Time, content []byte) error
	// Get returns a stored graph, and when it was received; false if none is stored.
	Get(key cache.GraphKey) (content []byte, received time.Time, ok bool)
}

// NotStoredError is the error for a graph that is not stored, of a plan without access to
// the update service.
type NotStoredError struct {
	Key cache.GraphKey
	// From is the release that the plan starts from.
	From string
}

// Error implements error.
func (e *NotStoredError) Error() string {
	return fmt.Sprintf("no graph of channel %q for %s is stored for the update service %s", e.Key.Channel, e.Key.Architecture, redacted(e.Key.URL))
}

// NoChannelError is the error for an update service without a channel to request from it:
// neither the request nor the cluster has one.
type NoChannelError struct {
	// Service is the URL of the update service.
	Service string
}

// Error implements error.
func (e *NoChannelError) Error() string {
	return "no channel is known to request from " + redacted(e.Service)
}

// redacted is a URL without its password.
func redacted(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return "(invalid URL)"
	}
	return parsed.Redacted()
}

// GraphFile is a graph that was read.
type GraphFile struct {
	// Name is the channel of the graph, or the name of the file.
	Name    string
	Content []byte
}

// PlanNeeds are the permissions of Plan.
func PlanNeeds() access.Needs {
	return TargetsNeeds().And(access.Needs{Optional: []access.Request{
		{Verb: "get", Group: "config.openshift.io", Resource: "proxies", Name: "cluster"},
		{Verb: "get", Resource: "configmaps", Namespace: "openshift-config-managed", Name: "trusted-ca-bundle"},
		{Verb: "get", Group: "config.openshift.io", Resource: "infrastructures", Name: "cluster"},
		{Verb: "list", Resource: "nodes"},
		{Verb: "list", Group: "machineconfiguration.openshift.io", Resource: "machineconfigpools"},
		{Verb: "list", Group: "machineconfiguration.openshift.io", Resource: "machineconfignodes"},
		{Verb: "list", Group: "apps", Resource: "daemonsets"},
	}})
}

// PlanWithout plans without a cluster: each risk is open that is not accepted, and the
// nodes are unknown. Errors are those of Plan.
func PlanWithout(ctx context.Context, request PlanRequest, options Options) (updateplan.Plan, error) {
	model := rollout.Documented(defaultMasters, "")
	planner := planner{request: request, log: cmp.Or(options.Logger, slog.New(slog.DiscardHandler)), basis: updateplan.Basis{
		From: request.From, Architecture: cmp.Or(request.Architecture, runtime.GOARCH), ImageSet: request.ImageSet,
		Now: time.Now(), ToolVersion: options.ToolVersion, Assess: assessWithout,
		Rollout: updateplan.Rollout{
			Model: model,
			Basis: []string{documented(model), fmt.Sprintf("The number of control plane nodes is assumed: %d.", defaultMasters)},
		},
		Missing: []string{
			"whether a risk applies that depends on the cluster: no cluster was read, and each risk is open unless it is accepted",
			"pools, pauses and reboots: no cluster was read",
			"admin acknowledgements, removed APIs and OLM operators: no cluster was read",
		},
	}}
	accepted := slices.Concat(options.Accepted, options.Accept)
	planner.basis.Accepted = func(version string) map[string]string {
		return acceptance.Judge(accepted, acceptance.Scope{Target: version, Now: planner.basis.Now}).Accepted()
	}
	if err := planner.readGraph(ctx, graphSource{transport: registry.OwnOutbound(), own: updateservice.Default}); err != nil {
		return updateplan.Plan{}, err
	}
	return planner.make(func(string) {}, func(path.Path) {})
}

// Plan plans the path from the release of a cluster to a target, with what is known of the
// cluster. Nothing is created. A *BadInputError is a target without a path, or a graph that
// cannot be used. With a *updateplan.Unreachable as its cause it has a remedy, and the plan
// has the decision NoPath; beside other errors the plan is empty.
func Plan(ctx context.Context, cluster *cluster.Cluster, request PlanRequest, options Options) (updateplan.Plan, error) {
	v, err := newView(ctx, cluster, options)
	if err != nil {
		return updateplan.Plan{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, v.remaining())
	defer cancel()
	planner, err := v.planner(ctx, request)
	if err != nil {
		return updateplan.Plan{}, err
	}
	return planner.make(func(to string) {
		v.progress.step("evaluating the risks")
		planner.basis.Assess = v.assess(ctx, planner.basis.Risks(to))
	}, func(best path.Path) {
		v.progress.step("reading the nodes and evaluating the gates")
		planner.basis.Rollout = v.calibrated(ctx, planner.miss)
		planner.basis.Findings = v.gatesOf(ctx, best, planner.miss)
	})
}

// planner plans for this cluster: it has read the graph unless there is an error.
func (v view) planner(ctx context.Context, request PlanRequest) (*planner, error) {
	planner := &planner{request: request, log: v.options.Logger, basis: updateplan.Basis{
		From: v.about.Version, Channel: v.version.Spec.Channel, ImageSet: request.ImageSet, Cluster: v.about.ID,
		Now: v.start, ToolVersion: v.options.ToolVersion, Assess: notAssessed("the risk is on no path to the target"),
		Accepted: func(version string) map[string]string { return v.accounts(version).Accepted() },
	}}
	planner.basis.Architecture = v.graphArchitecture(ctx, request.Architecture, planner.miss)
	if len(request.Channels) == 0 && v.version.Spec.Channel != "" {
		planner.request.Channels = []string{v.version.Spec.Channel}
	}
	v.progress.step("reading the update graph")
	return planner, planner.readGraph(ctx, v.graphSource(ctx))
}

// planner makes one plan.
type planner struct {
	request PlanRequest
	basis   updateplan.Basis
	log     *slog.Logger
}

// miss records a part of the plan that could not be determined.
func (p *planner) miss(format string, args ...any) {
	p.basis.Missing = append(p.basis.Missing, fmt.Sprintf(format, args...))
}

// make makes the plan: evaluate is called once the target is known, and inspect once the
// path is.
func (p *planner) make(evaluate func(to string), inspect func(path.Path)) (updateplan.Plan, error) {
	to, notice, err := p.resolve()
	if err != nil {
		return p.withoutPath(err)
	}
	if p.request.Stored != nil && to == p.basis.From {
		return p.compared(updateplan.Complete(p.basis, to)), nil
	}
	evaluate(to)
	paths, err := p.basis.Paths(to)
	if err != nil {
		return p.withoutPath(err)
	}
	inspect(paths.Best)
	made, err := updateplan.New(p.basis, paths)
	if err != nil {
		return updateplan.Plan{}, err
	}
	if notice != "" {
		made.Notices = append([]string{notice}, made.Notices...)
	}
	return p.compared(made), nil
}

// withoutPath is the plan for a target without a path, beside the error.
func (p *planner) withoutPath(err error) (updateplan.Plan, error) {
	failed, ok := errors.AsType[*updateplan.Unreachable](err)
	if !ok {
		return updateplan.Plan{}, &BadInputError{Err: err}
	}
	return p.compared(updateplan.WithoutPath(p.basis, failed)), &BadInputError{Err: err}
}

func (p *planner) resolve() (version, notice string, err error) {
	if p.request.Stored != nil {
		return p.request.Stored.To, "", nil
	}
	return p.basis.Resolve(p.request.Target)
}

// compared adds the comparison with the stored plan.
func (p *planner) compared(made updateplan.Plan) updateplan.Plan {
	if p.request.Stored != nil {
		comparison := p.basis.Compare(*p.request.Stored)
		made.Comparison = &comparison
	}
	return made
}

// maxGraphs bounds the graphs of one plan.
const maxGraphs = 32

// readGraph reads and unites all graphs.
func (p *planner) readGraph(ctx context.Context, source graphSource) error {
	graphs, err := p.graphs(ctx, source)
	if err != nil {
		return err
	}
	united, err := graph.Union(graphs...)
	if err != nil {
		return &BadInputError{Err: err}
	}
	p.basis.Graph = united
	for i := range united.Releases {
		p.basis.Sources = append(p.basis.Sources, united.Sources(i)...)
	}
	slices.Sort(p.basis.Sources)
	p.basis.Sources = slices.Compact(p.basis.Sources)
	return nil
}

func (p *planner) graphs(ctx context.Context, source graphSource) ([]*graph.Graph, error) {
	graphs, err := p.parseFiles()
	if err != nil {
		return nil, err
	}
	services := p.request.Services
	if len(services) == 0 && len(graphs) == 0 {
		services = []string{source.own}
	}
	if len(services) > 0 && len(p.request.Channels) == 0 {
		return nil, &BadInputError{Err: &NoChannelError{Service: services[0]}}
	}
	if count := len(graphs) + len(services)*len(p.request.Channels); count > maxGraphs {
		return nil, badInput("the plan needs %d graphs, more than %d", count, maxGraphs)
	}
	for _, service := range services {
		for _, channel := range p.request.Channels {
			requested, err := p.ask(ctx, source, service, channel)
			if err != nil {
				return nil, err
			}
			graphs = append(graphs, requested)
		}
	}
	return graphs, nil
}

func (p *planner) parseFiles() ([]*graph.Graph, error) {
	var graphs []*graph.Graph
	for _, file := range p.request.Files {
		parsed, err := graph.Parse(file.Name, file.Content)
		if err != nil {
			return nil, &BadInputError{Err: err}
		}
		if len(parsed.Releases) == 0 {
			return nil, badInput("the update graph %s has no release", file.Name)
		}
		graphs = append(graphs, parsed)
	}
	return graphs, nil
}

// ask requests one graph, and stores it, unless a recent one is stored. An unknown channel
// is an empty graph.
func (p *planner) ask(ctx context.Context, source graphSource, service, channel string) (*graph.Graph, error) {
	key := cache.GraphKey{URL: service, Channel: channel, Architecture: p.basis.Architecture}
	if p.request.Offline {
		return p.stored(key)
	}
	if recent := p.recent(ctx, key); recent != nil {
		return recent, nil
	}
	query := updateservice.Query{URL: service, Channel: channel, Architecture: p.basis.Architecture, Version: p.basis.From}
	if service == source.own {
		query.ID = source.id
	}
	requested, content, err := updateservice.Graph(ctx, source.transport, query)
	if err != nil {
		return nil, err
	}
	if len(requested.Releases) == 0 {
		return nil, badInput("the update service has no release in channel %q for %s: there is no such channel, or the service has none of its releases", channel, p.basis.Architecture)
	}
	if p.request.Graphs != nil {
		if err := p.request.Graphs.Put(key, p.basis.Now, content); err != nil {
			p.basis.Notices = append(p.basis.Notices, err.Error())
		}
	}
	return requested, nil
}

// maxReuse is how long a stored graph is used instead of a request. CVO requests a graph
// again after two to four minutes.
const maxReuse = 10 * time.Minute

// recent is a graph that was stored at most maxReuse ago; nil if there is none that can be
// used.
func (p *planner) recent(ctx context.Context, key cache.GraphKey) *graph.Graph {
	if p.request.Graphs == nil {
		return nil
	}
	content, received, ok := p.request.Graphs.Get(key)
	age := p.basis.Now.Sub(received)
	if !ok || age < 0 || age > maxReuse {
		return nil
	}
	parsed, err := graph.Parse(key.Channel, content)
	if err != nil || len(parsed.Releases) == 0 {
		return nil
	}
	p.log.InfoContext(ctx, "the stored update graph is used", "channel", key.Channel, "architecture", key.Architecture, "age", age.Round(time.Second))
	return parsed
}

// stored is the graph that was stored when it was requested last.
func (p *planner) stored(key cache.GraphKey) (*graph.Graph, error) {
	missing := &BadInputError{Err: &NotStoredError{Key: key, From: p.basis.From}}
	if p.request.Graphs == nil {
		return nil, missing
	}
	content, received, ok := p.request.Graphs.Get(key)
	if !ok {
		return nil, missing
	}
	parsed, err := graph.Parse(key.Channel, content)
	if err != nil {
		return nil, &BadInputError{Err: err}
	}
	p.basis.Notices = append(p.basis.Notices, fmt.Sprintf("offline: the graph of channel %s is %s old (%s), and lacks what was published or blocked since",
		key.Channel, duration.HumanDuration(max(0, p.basis.Now.Sub(received))), timestamp(received)))
	return parsed, nil
}
