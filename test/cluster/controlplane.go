package cluster

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func (p *plan) startEtcd(ctx context.Context) error {
	start := time.Now()
	client := "http://" + p.etcd
	p.cluster.Etcd = client
	err := p.spawn("etcd", "server",
		"--data-dir", filepath.Join(p.cluster.Dir, "etcd"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", "http://127.0.0.1:0",
		"--unsafe-no-fsync", // no data has to survive a power failure
		"--logger", "zap", "--log-level", "warn")
	if err != nil {
		return err
	}
	if err := p.await(ctx, "etcd", get(http.DefaultClient, client+"/health")); err != nil {
		return err
	}
	p.done("etcd", start)
	return nil
}

func (p *plan) startAPIServer(ctx context.Context) error {
	start := time.Now()
	if err := p.spawn("kube-apiserver", "kube-apiserver", p.apiFlags()...); err != nil {
		return err
	}
	https, err := rest.HTTPClientFor(p.cluster.Config)
	if err != nil {
		return err
	}
	if err := p.await(ctx, "kube-apiserver", get(https, p.cluster.Config.Host+"/readyz")); err != nil {
		return err
	}
	p.done("kube-apiserver", start)
	return nil
}

func (p *plan) apiFlags() []string {
	flags := []string{
		"--etcd-servers=http://" + p.etcd,
		"--bind-address=127.0.0.1", "--secure-port=" + portOf(p.api),
		"--tls-cert-file=" + p.identity.path("apiserver.crt"),
		"--tls-private-key-file=" + p.identity.path("apiserver.key"),
		"--client-ca-file=" + p.identity.path("ca.crt"),
		"--token-auth-file=" + p.identity.path("tokens.csv"),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + p.identity.path("service-account.pub"),
		"--service-account-signing-key-file=" + p.identity.path("service-account.key"),
		"--kubelet-certificate-authority=" + p.identity.path("ca.crt"),
		"--kubelet-client-certificate=" + p.identity.path("apiserver-kubelet.crt"),
		"--kubelet-client-key=" + p.identity.path("apiserver-kubelet.key"),
		"--kubelet-preferred-address-types=InternalIP",
		// Tests end containers with SIGKILL only.
		"--feature-gates=ContainerStopSignals=true",
		"--profiling=false",
	}
	if p.controlPlaneOnly {
		// No pod uses the endpoint of the Service kubernetes.
		return append(flags, "--service-cluster-ip-range=10.204.255.0/24", "--endpoint-reconciler-type=none", "--advertise-address=127.0.0.1")
	}
	return append(flags, "--service-cluster-ip-range="+p.network.services.String(), "--advertise-address="+p.network.gateway().String())
}

// startControllerManager returns when the ServiceAccount and the ConfigMap exist
// without which no pod can be created in the default namespace.
func (p *plan) startControllerManager(ctx context.Context) error {
	start := time.Now()
	flags := []string{
		"--kubeconfig=" + p.identity.path("controller-manager.kubeconfig"),
		"--leader-elect=false", "--secure-port=0",
		"--root-ca-file=" + p.identity.path("ca.crt"),
		"--service-account-private-key-file=" + p.identity.path("service-account.key"),
	}
	if p.controlPlaneOnly {
		// The nodes of a test have no kubelet, and must not be changed.
		flags = append(flags, "--controllers=*,-node-lifecycle-controller")
	}
	if p.controllerRate > 0 {
		flags = append(flags, fmt.Sprintf("--kube-api-qps=%d", p.controllerRate), fmt.Sprintf("--kube-api-burst=%d", p.controllerBurst))
	}
	if err := p.spawn("kube-controller-manager", "kube-controller-manager", flags...); err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(p.cluster.Config)
	if err != nil {
		return err
	}
	watches := map[string]watcher{
		"default":          clients.CoreV1().ServiceAccounts("default").Watch,
		"kube-root-ca.crt": clients.CoreV1().ConfigMaps("default").Watch,
	}
	for name, watcher := range watches {
		if err := p.see(ctx, "kube-controller-manager", name, watcher, present); err != nil {
			return err
		}
	}
	p.done("kube-controller-manager", start)
	return nil
}

type watcher func(context.Context, metav1.ListOptions) (watch.Interface, error)

func present(event watch.Event) bool {
	return event.Type == watch.Added || event.Type == watch.Modified
}

// see watches the object of that name until an event is as wanted. A watch that
// ends early is restarted.
func (p *plan) see(ctx context.Context, component, name string, watcher watcher, wanted func(watch.Event) bool) error {
	selector := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	return p.await(ctx, component, func(ctx context.Context) error {
		events, err := watcher(ctx, selector)
		if err != nil {
			return err
		}
		defer events.Stop()
		for {
			select {
			case <-ctx.Done():
				return fmt.Errorf("%q does not exist or is not ready", name)
			case event, open := <-events.ResultChan():
				if !open {
					return fmt.Errorf("the watch for %q ended", name)
				}
				if wanted(event) {
					return nil
				}
			}
		}
	})
}
