package launch_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/writeguard"
	"github.com/openshift/update-preflight/test/cluster"
)

var (
	api    kubernetes.Interface
	config *rest.Config
)

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) {
		config = rest.CopyConfig(c.Config)
		config.QPS = -1
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		api = client
	}, cluster.ControlPlaneOnly())
}

// process is one process that runs checks, with what it knows of their objects.
type process struct {
	*launch.Launcher
	objects *inventory.Objects
	guards  sync.Map
}

// newLauncher returns a process with the clients of a configuration.
func newLauncher(t *testing.T, config *rest.Config) *process {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	objects := inventory.New(client, metadata)
	return &process{Launcher: launch.New(objects), objects: objects}
}

func (p *process) Created(run string) []preflight.Object { return p.objects.Created.Of(run) }

func (p *process) CopyAccounts(ctx context.Context, plan jobplan.Plan) jobplan.Plan {
	return accountcopy.Make(ctx, p.objects.Kubernetes, plan)
}

func (p *process) Guard(ctx context.Context, plan jobplan.Plan) finding.Finding {
	guard := writeguard.New(p.objects, p, plan.Run)
	guard.Begin(ctx, plan)
	p.guards.Store(plan.Run.ID, guard)
	return guard.Await(ctx, plan)
}

func (p *process) GuardChanged(ctx context.Context, run jobplan.Run) (finding.Finding, bool) {
	stored, _ := p.guards.Load(run.ID)
	guard, _ := stored.(*writeguard.Guard)
	return guard.Changed(ctx)
}

func (p *process) Cleanup(ctx context.Context, run string) (cleanup.Removal, error) {
	return cleanup.Run(ctx, p.objects, run)
}
