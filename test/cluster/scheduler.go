package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
)

// schedulerConfig is the KubeSchedulerConfiguration of QuickScheduler, without the path of the
// kubeconfig.
const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
clientConnection: {kubeconfig: %q}
`

// startScheduler does not wait for the scheduler unless it serves its metrics. Pods stay
// pending until it is ready.
func (p *plan) startScheduler(ctx context.Context) error {
	const name = "kube-scheduler"
	kubeconfig := p.identity.path("scheduler.kubeconfig")
	if !p.quickScheduler {
		return p.spawn(name, name, "--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port=0")
	}
	config := filepath.Join(p.cluster.Dir, "scheduler.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, schedulerConfig, kubeconfig), 0o600); err != nil {
		return err
	}
	err := p.spawn(name, name, "--config="+config, "--bind-address=127.0.0.1", "--secure-port="+portOf(p.scheduler),
		"--tls-cert-file="+p.identity.path("apiserver.crt"), "--tls-private-key-file="+p.identity.path("apiserver.key"),
		"--authorization-always-allow-paths=/metrics")
	if err != nil {
		return err
	}
	p.cluster.SchedulerMetrics = "https://" + p.scheduler + "/metrics"
	return p.await(ctx, name, func(ctx context.Context) error {
		_, err := p.cluster.Unscheduled(ctx)
		return err
	})
}

// Unscheduled returns how many pods are in each queue of the scheduler, such as "active" for those that
// it tries next, "backoff" for those that it tries after a second, and "unschedulable" for those that it
// tries after a change. The cluster must have been started with QuickScheduler.
func (c *Cluster) Unscheduled(ctx context.Context) (map[string]int, error) {
	if c.SchedulerMetrics == "" {
		return nil, errors.New("the scheduler does not serve its metrics")
	}
	client, err := rest.HTTPClientFor(rest.AnonymousClientConfig(c.Config))
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.SchedulerMetrics, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the scheduler: %w", err)
	}
	queues := map[string]int{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() && err == nil {
		if sample, ok := strings.CutPrefix(lines.Text(), `scheduler_pending_pods{queue="`); ok {
			queue, number, _ := strings.Cut(sample, `"} `)
			queues[queue], err = strconv.Atoi(number)
		}
	}
	if err = errors.Join(err, lines.Err(), response.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the metrics of the scheduler: %w", err)
	}
	if response.StatusCode != http.StatusOK || len(queues) == 0 {
		return nil, fmt.Errorf("read the metrics of the scheduler: %s without its queues", response.Status)
	}
	return queues, nil
}
