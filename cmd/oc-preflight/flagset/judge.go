// Package flagset answers: what may be chosen on the command line?
//
// Each type has the flags of one subject: Add defines them, and other methods read what they
// select. The options of a command have the types that it uses as fields.
package flagset

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/health/dependency"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/rehearsal"
	"github.com/openshift/update-preflight/signature/localfile"
	"github.com/openshift/update-preflight/signature/outbound"
)

// Accepted are the flags that accept risks.
type Accepted struct {
	// Accept are names of findings.
	Accept []string
	// AcceptFiles are paths of files with accepted risks; [Accepted.Read] reads them.
	AcceptFiles []string
	// Member is the cluster of a fleet that is evaluated; nil for a single cluster.
	Member *Member
}

// Member names a cluster of a fleet, for acceptances that are limited to some clusters.
type Member struct {
	Name   string
	Labels map[string]string
}

// Add adds --accept and --accept-file to the command.
func (f *Accepted) Add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.Accept, "accept", nil, "Names of findings to accept. Gates and the signature cannot be accepted.")
	c.Flags().StringArrayVar(&f.AcceptFiles, "accept-file", nil,
		"File with accepted risks: each with a reason, an owner and optionally expiry, versions and clusters; \"accept --help\" shows "+
			"the format. May be repeated.")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer, Values: option.Findings}, "accept")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswerByContent}, "accept-file")
}

// Read returns the acceptances of the files; for a member of a fleet, only the ones that include it.
func (f *Accepted) Read(ctx context.Context) ([]acceptance.Acceptance, error) {
	accepted, err := f.ReadAll(ctx)
	if err != nil {
		return nil, err
	}
	if f.Member != nil {
		return acceptance.For(accepted, f.Member.Name, f.Member.Labels), nil
	}
	if err := acceptance.CheckSingle(accepted); err != nil {
		return nil, exitcode.BadUsage(fmt.Errorf("--accept-file: %w", err))
	}
	return accepted, nil
}

// ReadAll returns all acceptances of the files.
func (f *Accepted) ReadAll(ctx context.Context) ([]acceptance.Acceptance, error) {
	var accepted []acceptance.Acceptance
	for _, path := range f.AcceptFiles {
		read, err := readAcceptances(ctx, path)
		if err != nil {
			return nil, exitcode.BadUsage(fmt.Errorf("--accept-file: %w", err))
		}
		accepted = append(accepted, read...)
	}
	return accepted, nil
}

// Judge are the flags that change how findings are evaluated.
type Judge struct {
	Accepted

	// Prometheus is the URL of a Prometheus or Thanos querier; empty for the monitoring of the cluster.
	Prometheus string
	// IgnoredAlerts are names of alerts that only cause warnings.
	IgnoredAlerts []string
	// IgnoredNamespaces are namespaces whose alerts only cause warnings.
	IgnoredNamespaces []string
	// Dependencies are URLs that must respond to this machine.
	Dependencies []string
	// Since is when the clients of removed APIs were fixed: a time, or a duration before now.
	Since string
}

// Add adds the flags of a judgement to the command, --accept and --accept-file included.
func (f *Judge) Add(c *cobra.Command) {
	f.AddForFleet(c)
	c.Flags().StringVar(&f.Prometheus, "prometheus", "",
		"URL of a Prometheus or Thanos querier. It must have the metrics and alerts of the cluster, whose own monitoring is the default.")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer, Again: option.Reaching}, "prometheus")
}

// AddForFleet adds the flags that may be the same for many clusters.
func (f *Judge) AddForFleet(c *cobra.Command) {
	f.Accepted.Add(c)
	c.Flags().StringSliceVar(&f.IgnoredAlerts, "ignore-alert", nil, "Report these alerts as warnings only.")
	c.Flags().StringSliceVar(&f.IgnoredNamespaces, "ignore-namespace", nil, "Report the alerts of these namespaces as warnings only.")
	c.Flags().StringVar(&f.Since, "since", "", "When the clients of removed APIs were fixed: time, like 2026-11-22T14:20:00Z, or "+
		"duration before now, like 3h. Request counts are hourly. Hours that ended before this time only cause warnings.")
	c.Flags().StringArrayVar(&f.Dependencies, "dependency", nil,
		"URL outside of the cluster that must respond to this machine. May be repeated.")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer}, "ignore-alert", "since")
	option.Declare(c.Flags(), option.Option{Group: option.Advanced, Effect: option.OnAnswer}, "ignore-namespace", "dependency")
}

// Options reads the files and values of the flags, and returns the options of a judgement of the cluster.
func (f Judge) Options(ctx context.Context, client *cli.Client, reached *cluster.Cluster) (runner.Options, error) {
	accepted, err := f.Read(ctx)
	if err != nil {
		return runner.Options{}, err
	}
	find, err := monitoring.Querier{Config: reached.Config(), Dynamic: reached.Dynamic}.Locate(f.Prometheus)
	if err != nil {
		return runner.Options{}, exitcode.BadUsage(fmt.Errorf("--prometheus: %w", err))
	}
	fixed, err := f.fixed()
	if err != nil {
		return runner.Options{}, exitcode.BadUsage(fmt.Errorf("--since: %w", err))
	}
	return runner.Options{
		Judgement: scene.Judgement{
			Fixed: fixed, Monitoring: monitoring.New(find, monitoring.DefaultTimeout), Accepted: accepted,
			Accept: acceptance.Named("--accept", f.Accept...), IgnoredAlerts: f.IgnoredAlerts, IgnoredNamespaces: f.IgnoredNamespaces,
			Dependencies: dependency.New(outbound.Client(), f.Dependencies),
		},
		Hooks:  runner.Hooks{Logger: client.Log, ToolVersion: program.Version()},
		Origin: f.origin(),
	}, nil
}

// Check rejects a value of --prometheus that is no URL: it needs no cluster.
func (f Judge) Check() error {
	if _, err := (monitoring.Querier{}).Locate(f.Prometheus); err != nil {
		return fmt.Errorf("--prometheus: %w", err)
	}
	return nil
}

// origin identifies the monitoring and the dependencies.
func (f Judge) origin() runner.Origin {
	made := MonitoringOrigin(f.Prometheus)
	made.Dependencies = runner.Identity(f.Dependencies...)
	return made
}

// MonitoringOrigin identifies a monitoring by the value of --prometheus; empty for the monitoring of the cluster.
func MonitoringOrigin(prometheus string) runner.Origin {
	if prometheus == "" {
		return runner.Origin{}
	}
	return runner.Origin{Monitoring: runner.Identity(prometheus)}
}

// fixed is the time of --since; the zero value without the flag.
func (f Judge) fixed() (removedapi.FixTime, error) {
	if f.Since == "" {
		return removedapi.FixTime{}, nil
	}
	return removedapi.ParseFixTime(f.Since)
}

func readAcceptances(ctx context.Context, path string) ([]acceptance.Acceptance, error) {
	file, err := localfile.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return acceptance.Read(path, file)
}

// Hosted are the flags that select a hosted cluster of the management cluster.
type Hosted struct {
	// Cluster is the NAMESPACE/NAME of a HostedCluster; empty for the cluster of the kubeconfig.
	Cluster string
	// GuestKubeconfig is the path of the kubeconfig of the guest; empty for the Secret that HyperShift writes.
	GuestKubeconfig string
	// Pools are the names of the NodePools to update as well.
	Pools []string
}

// Add adds the flags to a command that evaluates findings.
func (h *Hosted) Add(c *cobra.Command) {
	h.AddCluster(c)
	c.Flags().StringSliceVar(&h.Pools, "nodepool", nil,
		"Name of a NodePool to update as well; only these NodePools are evaluated. May be repeated. Default: evaluate all NodePools, "+
			"update none.")
	option.Declare(c.Flags(), option.Option{Group: option.Hosted, Effect: option.OnAnswer, Again: option.Reaching}, "nodepool")
}

// AddCluster adds the flags that select a hosted cluster, without those that select its NodePools.
func (h *Hosted) AddCluster(c *cobra.Command) {
	c.Flags().StringVar(&h.Cluster, "hosted-cluster", "",
		"HostedCluster (HyperShift) to evaluate: NAMESPACE/NAME. The kubeconfig must select its management cluster.")
	c.Flags().StringVar(&h.GuestKubeconfig, "guest-kubeconfig", "",
		"Kubeconfig of the guest of --hosted-cluster. Default: the Secret named in the status of the HostedCluster.")
	option.Declare(c.Flags(), option.Option{Group: option.Hosted, Effect: option.OnClusters, Again: option.Reaching}, "hosted-cluster",
		"guest-kubeconfig")
}

// Named reports whether a hosted cluster is selected.
func (h *Hosted) Named() bool { return h.Cluster != "" }

// Subject names the evaluated cluster: as [cli.Subject] does, or the hosted cluster there.
func (h *Hosted) Subject(client *cli.Client) string {
	if !h.Named() {
		return cli.Subject(client)
	}
	return "hosted cluster " + h.Cluster + " of " + cli.Subject(client)
}

// Opened is a cluster whose updates are evaluated, with the estate that it belongs to.
type Opened struct {
	Cluster *cluster.Cluster
	Estate  hosted.Estate
}

// Open opens the cluster whose updates are evaluated: the guest of the hosted cluster with the estate that it belongs
// to, or the cluster of the client. A guest that cannot be reached is
// no error.
func (h *Hosted) Open(ctx context.Context, client *cli.Client) (*cluster.Cluster, hosted.Estate, error) {
	if h.Cluster == "" {
		reached, err := client.Open(ctx)
		return reached, hosted.Estate{}, err
	}
	opened, err := h.reach(ctx, client, cli.Archives(client))
	return opened.Cluster, opened.Estate, err
}

// OpenArchives opens each archive of the client by itself, in the order of the flags. An archive without the guest is an
// error.
func (h *Hosted) OpenArchives(ctx context.Context, client *cli.Client) ([]Opened, error) {
	var all []Opened
	if h.Cluster == "" {
		clusters, err := cli.OpenArchives(ctx, client)
		for _, each := range clusters {
			all = append(all, Opened{Cluster: each})
		}
		return all, err
	}
	for _, path := range cli.Archives(client) {
		opened, err := h.reach(ctx, client, []string{path})
		if err != nil {
			return nil, err
		}
		if err := opened.Estate.GuestError(); err != nil {
			return nil, fmt.Errorf("--archive %s: %w", path, err)
		}
		all = append(all, opened)
	}
	return all, nil
}

// reach opens the guest of the hosted cluster: from the archives, if there are any.
func (h *Hosted) reach(ctx context.Context, client *cli.Client, archives []string) (Opened, error) {
	name, err := NamespacedName("--hosted-cluster", h.Cluster)
	if err != nil {
		return Opened{}, exitcode.BadUsage(err)
	}
	selected := hosted.Selection{Namespace: name.Namespace, Name: name.Name, Pools: h.Pools}
	management, err := h.management(ctx, client, &selected, archives)
	if err != nil {
		return Opened{}, err
	}
	defer client.Waiting("reading the hosted cluster")()
	guest, estate, err := hosted.Reach(ctx, management, selected, cli.ConnectTo)
	return Opened{Cluster: guest, Estate: estate}, err
}

// management connects the management cluster, and selects the guest that the flags name.
func (h *Hosted) management(ctx context.Context, client *cli.Client, selected *hosted.Selection,
	archives []string,
) (*cluster.Cluster, error) {
	if len(archives) > 0 {
		management, guest, err := client.OpenHosted(ctx, selected.Name, archives...)
		selected.Guest = func() (*cluster.Cluster, error) {
			if guest == nil {
				return nil, fmt.Errorf("the archive has no directory hostedcluster-%s", selected.Name)
			}
			return guest, nil
		}
		return management, err
	}
	if h.GuestKubeconfig != "" {
		guest, err := cli.ConnectFile(h.GuestKubeconfig)
		if err != nil {
			return nil, exitcode.BadUsage(fmt.Errorf("--guest-kubeconfig: %w", err))
		}
		selected.Guest = func() (*cluster.Cluster, error) { return guest, nil }
	}
	management, err := client.Connect()
	if err != nil {
		return nil, err
	}
	return management, client.Review(ctx, management, hosted.Reads(selected.Namespace, selected.Name))
}

// Rehearse is --rehearse: whether and how the API server is asked by dry runs; empty for not.
type Rehearse string

// Add adds the flag; what states what is asked.
func (f *Rehearse) Add(c *cobra.Command, what string) {
	c.Flags().StringVar((*string)(f), "rehearse", "",
		what+" Guarded, the default, also has the API server deny everything else; unguarded leaves that to this client.")
	c.Flags().Lookup("rehearse").NoOptDefVal = string(rehearsal.Guarded)
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer}, "rehearse")
	completion.Fixed(c, "rehearse", string(rehearsal.Guarded), string(rehearsal.Unguarded))
}

// Mode is the mode that is chosen.
func (f Rehearse) Mode() rehearsal.Mode { return rehearsal.Mode(f) }

// Check rejects an unknown mode.
func (f Rehearse) Check() error {
	if !f.Mode().Known() {
		return fmt.Errorf("--rehearse: %q is not one of %q", string(f), []rehearsal.Mode{rehearsal.Guarded, rehearsal.Unguarded})
	}
	return nil
}
