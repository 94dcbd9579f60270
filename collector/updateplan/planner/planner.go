// Package planner answers: how does this cluster get to a release, given what can be read now?
//
// [Plan] reads the update graph, evaluates risks, nodes and gates, and returns an updateplan.Plan. [PlanWithout]
// does so without a cluster.
package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/collector/rollout"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/targets"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/updateplan/duration"
	"github.com/openshift/update-preflight/collector/updateplan/graph"
	"github.com/openshift/update-preflight/collector/updateplan/graphsource"
	"github.com/openshift/update-preflight/collector/updateplan/imageset"
	"github.com/openshift/update-preflight/collector/updateplan/path"
)

// Request selects what to plan.
type Request struct {
	// From is the release to start from, without a cluster; empty for the release of the cluster.
	From string
	// Target is where to go to.
	Target updateplan.Target
	// Graph says where the update graph comes from.
	Graph graphsource.Request
	// ImageSet is the format of ImageSetConfigurations; empty for V2.
	ImageSet imageset.Format
	// Stored is a plan to compare with, whose target is the target; nil for none.
	Stored *updateplan.Plan
	// Transport reaches the update services.
	Transport http.RoundTripper
	// Logger receives which stored graph is used; nil for none.
	Logger *slog.Logger
}

// Needs are the permissions to open a scene for Plan, and to plan.
func Needs() access.Needs {
	return targets.Needs().And(access.Needs{Optional: []access.Request{
		{Verb: "get", Group: "config.openshift.io", Resource: "proxies", Name: "cluster"},
		{Verb: "get", Resource: "configmaps", Namespace: "openshift-config-managed", Name: "trusted-ca-bundle"},
		{Verb: "get", Group: "config.openshift.io", Resource: "infrastructures", Name: "cluster"},
		{Verb: "list", Resource: "nodes"},
		{Verb: "list", Group: "machineconfiguration.openshift.io", Resource: "machineconfigpools"},
		{Verb: "list", Group: "machineconfiguration.openshift.io", Resource: "machineconfignodes"},
		{Verb: "list", Group: "apps", Resource: "daemonsets"},
	}})
}

// Plan plans the path from the release of a cluster to a target, using the current state of the cluster. Nothing
// is created, and the time of the scene bounds it. An *input.Error is a target without a path, or an unusable
// graph. With a *updateplan.Unreachable as its cause it has a remedy, and the plan has the decision NoPath; with
// other errors the plan is empty.
func Plan(ctx context.Context, s scene.Scene, request Request) (updateplan.Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Remaining())
	defer cancel()
	p, err := read(ctx, s, request)
	if err != nil {
		return updateplan.Plan{}, err
	}
	made, err := p.plan(ctx)
	if err != nil {
		return made, err
	}
	return ordered(made, s), nil
}

// ordered adds the updates of a hosted cluster in order.
func ordered(made updateplan.Plan, s scene.Scene) updateplan.Plan {
	path := []update.Release{{Version: made.From, Image: s.About.Image}}
	for _, each := range made.Updates {
		path = append(path, update.Release{Version: each.To, Image: each.Image})
	}
	route, err := s.Settings.Estate.Route(path)
	if err != nil {
		route.Missing = []string{fmt.Sprintf("the updates of the NodePools: %v", err)}
	}
	for _, each := range route.Steps {
		made.Steps = append(made.Steps, updateplan.Step{
			Object: each.Object, From: each.From, To: each.To, Action: each.Action,
			Command: each.Action.Command,
		})
	}
	made.Missing, made.Notices = append(made.Missing, route.Missing...), append(made.Notices, route.Notices...)
	return made
}

// PlanWithout plans without a cluster: each risk is open that is not accepted, and the
// nodes are unknown. Of settings, the acceptances and the version of the tool are used.
// It returns the errors of Plan.
func PlanWithout(ctx context.Context, request Request, settings scene.Settings) (updateplan.Plan, error) {
	now := time.Now()
	accepted := slices.Concat(settings.Judgement.Accepted, settings.Judgement.Accept)
	p := planner{request: request, survey: nothing{}, basis: updateplan.Basis{
		From: request.From, Architecture: cmp.Or(request.Graph.Architecture, runtime.GOARCH), ImageSet: request.ImageSet,
		Now: now, ToolVersion: settings.ToolVersion, Assess: assessWithout,
		Accepted: func(version string) map[string]string {
			return acceptance.Evaluate(accepted, acceptance.Scope{Target: version, Now: now}).Accepted()
		},
		Missing: []string{
			"whether a risk that depends on the cluster applies: no cluster was read, and each risk is open unless it is accepted",
			"pools, pauses and reboots: no cluster was read",
			"admin acknowledgements, removed APIs and OLM operators: no cluster was read",
		},
	}}
	if err := p.readGraph(ctx, graphsource.Public(request.Transport)); err != nil {
		return updateplan.Plan{}, err
	}
	return p.plan(ctx)
}

// Graph reads the update graph for a path from the release of a cluster. With an error it also returns the
// notices.
func Graph(ctx context.Context, s scene.Scene, request Request) (graphsource.United, error) {
	p, err := read(ctx, s, request)
	return graphsource.United{Graph: p.basis.Graph, Sources: p.basis.Sources, Notices: p.basis.Notices}, err
}

// Best is the best path of a plan, and the notices of its graph. Each error about the
// target is an *input.Error.
func Best(ctx context.Context, s scene.Scene, request Request) (path.Path, []string, error) {
	p, err := read(ctx, s, request)
	if err != nil {
		return nil, p.basis.Notices, err
	}
	to, _, err := p.resolve()
	if err != nil {
		return nil, p.basis.Notices, &input.Error{Err: err}
	}
	p.basis.Assess = p.survey.assess(ctx, p.basis.Risks(to))
	paths, err := p.basis.Paths(to)
	if err != nil {
		return nil, p.basis.Notices, &input.Error{Err: err}
	}
	return paths.Best, p.basis.Notices, nil
}

// planner makes one plan.
type planner struct {
	request Request
	basis   updateplan.Basis
	survey  survey
}

// survey is the cluster's contribution to a plan. It calls miss with each part that could not be determined.
type survey interface {
	// assess evaluates risks.
	assess(ctx context.Context, risks []graph.Risk) func(graph.Risk) updateplan.Assessment
	// inspect reads the nodes, and evaluates the gates on a path by the version that they
	// are about.
	inspect(ctx context.Context, best path.Path, miss func(string, ...any)) (updateplan.Rollout, map[string][]finding.Finding)
}

// nothing is the survey without a cluster.
type nothing struct{}

func (nothing) assess(context.Context, []graph.Risk) func(graph.Risk) updateplan.Assessment {
	return assessWithout
}

func (nothing) inspect(context.Context, path.Path, func(string, ...any)) (updateplan.Rollout, map[string][]finding.Finding) {
	return duration.Assumed(), nil
}

// present is the survey of a cluster.
type present struct{ scene scene.Scene }

func (c present) assess(ctx context.Context, risks []graph.Risk) func(graph.Risk) updateplan.Assessment {
	c.scene.Step("evaluating the risks")
	return assess(ctx, c.scene, risks)
}

func (c present) inspect(ctx context.Context, best path.Path,
	miss func(string, ...any),
) (updateplan.Rollout, map[string][]finding.Finding) {
	c.scene.Step("reading the nodes and evaluating the gates")
	if !c.scene.Settings.Estate.HasMachineConfig() {
		miss("the durations of the NodePools: each is updated separately, after the control plane")
		assumed := updateplan.Rollout{
			Model: rollout.Documented(0, ""),
			Basis: []string{"The numbers come from the documentation for a cluster that is not hosted."},
		}
		return assumed, evaluateGates(ctx, c.scene, best, miss)
	}
	return duration.Rollout(ctx, c.scene, miss), evaluateGates(ctx, c.scene, best, miss)
}

// read has the graph of a plan for this cluster, unless there is an error.
func read(ctx context.Context, s scene.Scene, request Request) (*planner, error) {
	p := &planner{request: request, survey: present{s}, basis: updateplan.Basis{
		From: s.About.Version, Channel: s.Version.Spec.Channel, ImageSet: request.ImageSet, Cluster: s.About.ID,
		Now: s.Start, ToolVersion: s.Settings.ToolVersion, Assess: notAssessed("the risk is on no path to the target"),
		Accepted: func(version string) map[string]string { return s.Account(version).Accepted() },
	}}
	p.basis.Architecture = request.Graph.Architecture
	if p.basis.Architecture == "" {
		p.basis.Architecture = graphsource.Architecture(ctx, s, p.miss)
	}
	if len(request.Graph.Channels) == 0 && s.Version.Spec.Channel != "" {
		p.request.Graph.Channels = []string{s.Version.Spec.Channel}
	}
	s.Step("reading the update graph")
	return p, p.readGraph(ctx, graphsource.ServiceOf(s, request.Transport))
}

func (p *planner) readGraph(ctx context.Context, service graphsource.Service) error {
	request := p.request.Graph
	request.Architecture = p.basis.Architecture
	united, err := request.Read(ctx, graphsource.Position{
		From: p.basis.From, Now: p.basis.Now, Service: service, Logger: cmp.Or(p.request.Logger, slog.New(slog.DiscardHandler)),
	})
	p.basis.Graph, p.basis.Sources, p.basis.Notices = united.Graph, united.Sources, united.Notices
	return err
}

// miss records a part of the plan that could not be determined.
func (p *planner) miss(format string, args ...any) {
	p.basis.Missing = append(p.basis.Missing, fmt.Sprintf(format, args...))
}

func (p *planner) plan(ctx context.Context) (updateplan.Plan, error) {
	to, notice, err := p.resolve()
	if err != nil {
		return p.withoutPath(err)
	}
	if p.request.Stored != nil && to == p.basis.From {
		return p.compared(updateplan.Complete(p.basis, to)), nil
	}
	p.basis.Assess = p.survey.assess(ctx, p.basis.Risks(to))
	paths, err := p.basis.Paths(to)
	if err != nil {
		return p.withoutPath(err)
	}
	p.basis.Rollout, p.basis.Findings = p.survey.inspect(ctx, paths.Best, p.miss)
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
		return updateplan.Plan{}, &input.Error{Err: err}
	}
	return p.compared(updateplan.WithoutPath(p.basis, failed)), &input.Error{Err: err}
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

var _ = catalog.Reasons("A later update of a path, or a risk of it, is not evaluated now.", `
NotEvaluated | Another release must be installed first. | Run the preflight again after the update before it.`)

func notAssessed(detail string) func(graph.Risk) updateplan.Assessment {
	return func(graph.Risk) updateplan.Assessment {
		return updateplan.Assessment{Applies: updateplan.Unknown, Reason: "NotEvaluated", Detail: detail}
	}
}

// assessWithout returns what is known about a risk without a cluster.
func assessWithout(risk graph.Risk) updateplan.Assessment {
	if len(risk.Rules) > 0 && risk.Rules[0] == (graph.Rule{Type: "Always"}) {
		return updateplan.Assessment{Applies: updateplan.True, EvaluatedBy: updateplan.Preflight}
	}
	return notAssessed("")(risk)
}

const (
	// maxRisks bounds the risks of one plan that are evaluated. The largest public channel
	// has 20.
	maxRisks = 500
	// parallelRisks bounds those that are evaluated at one time.
	parallelRisks = 8
)

// assess evaluates each risk once, on the present cluster. The assessment of CVO counts
// where it has evaluated a risk with the same name and rules.
func assess(ctx context.Context, s scene.Scene, risks []graph.Risk) func(graph.Risk) updateplan.Assessment {
	assessments := assessedByCVO(ctx, s.Snapshot)
	risks = slices.DeleteFunc(slices.Clone(risks), func(each graph.Risk) bool {
		_, ok := assessments[updateplan.Key(each)]
		return ok
	})
	evaluator := risk.Evaluator{
		Subject: check.Subject{Cluster: s.Snapshot, Now: s.Start}, Client: s.Settings.Judgement.Monitoring, ClusterID: s.Version.Spec.ClusterID,
	}
	var mutex sync.Mutex
	var group errgroup.Group
	group.SetLimit(parallelRisks)
	for _, each := range risks[:min(len(risks), maxRisks)] {
		group.Go(func() error {
			assessed := assessOne(ctx, evaluator, each)
			mutex.Lock()
			defer mutex.Unlock()
			assessments[updateplan.Key(each)] = assessed
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	beyond := notAssessed(fmt.Sprintf("the risk is on no path to the target, or beyond the first %d", maxRisks))
	return func(risk graph.Risk) updateplan.Assessment {
		if assessed, ok := assessments[updateplan.Key(risk)]; ok {
			return assessed
		}
		return beyond(risk)
	}
}

// assessedByCVO are the assessments in ClusterVersion by their Key. Where they contradict
// each other, the risk applies.
func assessedByCVO(ctx context.Context, cluster *snapshot.Cluster) map[string]updateplan.Assessment {
	assessments := map[string]updateplan.Assessment{}
	assessed, err := risk.AssessedByCluster(ctx, cluster)
	if err != nil {
		return assessments // each risk is evaluated here
	}
	for _, each := range assessed {
		of := graph.Risk{Name: each.Name}
		for _, rule := range each.Rules {
			converted := graph.Rule{Type: rule.Type}
			if rule.PromQL != nil {
				converted.PromQL = rule.PromQL.PromQL
			}
			of.Rules = append(of.Rules, converted)
		}
		key := updateplan.Key(of)
		if each.Applies {
			assessments[key] = updateplan.Assessment{Applies: updateplan.True, EvaluatedBy: updateplan.CVO}
		} else if _, known := assessments[key]; !known {
			assessments[key] = updateplan.Assessment{Applies: updateplan.False, EvaluatedBy: updateplan.CVO}
		}
	}
	return assessments
}

func assessOne(ctx context.Context, evaluator risk.Evaluator, each graph.Risk) updateplan.Assessment {
	applies, err := evaluator.Match(ctx, risk.Conditions(each.Rules))
	assessed := updateplan.Assessment{Applies: updateplan.False, EvaluatedBy: updateplan.Preflight}
	switch known, ok := errors.AsType[*monitoring.Error](err); {
	case ok:
		assessed.Applies, assessed.Reason, assessed.Detail = updateplan.Unknown, known.Reason.String(), known.Message
	case err != nil:
		assessed.Applies, assessed.Reason, assessed.Detail = updateplan.Unknown, "Interrupted", err.Error()
	case applies:
		assessed.Applies = updateplan.True
	}
	return assessed
}

// evaluateGates evaluates all gates for the first update of a path, and for each later one that leaves
// its minor version those that can be evaluated in advance. Acknowledgements are due before the first
// update that does; those for later ones come with later releases.
func evaluateGates(ctx context.Context, s scene.Scene, best path.Path, miss func(string, ...any)) map[string][]finding.Finding {
	found := aheadGates(ctx, s, best, miss)
	if len(best) > 0 {
		found[best[0].To.Version] = presentGates(ctx, s, best[0].To.Version)
	}
	return found
}

// presentGates are the findings of all gates for an update from the present release, but that ClusterVersion
// does not list it: the channel of the plan may have to be set first.
func presentGates(ctx context.Context, s scene.Scene, version string) []finding.Finding {
	sources := slices.DeleteFunc(departure.Sources(s, departure.Present(), version),
		func(each collector.Source) bool { return each.Kind != finding.SourceGate })
	collected := collector.Collect(ctx, sources, func(collector.Source, []finding.Finding) {}).Merged(s.Account(version).Accepted())
	return slices.DeleteFunc(collected.Findings, func(f finding.Finding) bool {
		return f.Reason == clusterversion.ReasonUnknownUpdate.String() || f.Reason == clusterversion.ReasonAmbiguousVersion.String()
	})
}

func aheadGates(ctx context.Context, s scene.Scene, best path.Path, miss func(string, ...any)) map[string][]finding.Finding {
	found := map[string][]finding.Finding{}
	for _, hop := range best {
		if !(update.Update{From: hop.From.Parsed, To: hop.To.Parsed}).LeavesMinor() {
			continue
		}
		checks := []check.Check{removedapi.Check(s.Settings.Judgement.Fixed), gate.IncompatibleOperators()}
		first, later := s.Settings.Estate.Ahead()
		if len(found) == 0 {
			checks = slices.Concat(checks, first, []check.Check{adminack.Check()})
		} else {
			checks = append(checks, later...)
			miss("admin acknowledgements to leave %s: its gates come with its release", update.Line(hop.From.Parsed))
		}
		subject, err := departure.Subject(s, departure.Present(), hop.To.Version)
		if err != nil {
			miss("the gates of %s: %v", hop.To.Version, err)
			continue
		}
		collected := collector.Collect(ctx, collector.Bind(subject, checks),
			func(collector.Source, []finding.Finding) {}).Merged(s.Account(hop.To.Version).Accepted())
		found[hop.To.Version] = collected.Findings
	}
	return found
}
