package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/net/netutil"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner/trigger/console"
	"github.com/openshift/update-preflight/runner/trigger/controller"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/hostedguard"
	"github.com/openshift/update-preflight/runner/trigger/hostedruns"
	"github.com/openshift/update-preflight/runner/trigger/page"
	"github.com/openshift/update-preflight/runner/trigger/plannedrun"
	"github.com/openshift/update-preflight/runner/trigger/published"
)

// maxCABundle bounds the file of --metrics-client-ca, in bytes.
const maxCABundle = 1 << 20

// metricsClients are the clients that may read /metrics: those with a certificate that one
// of the CAs has signed, and with that common name.
type metricsClients struct {
	// authorities are the CAs at the time of the call. An error rejects every client.
	authorities func() (*x509.CertPool, error)
	commonName  string
}

// require has a server require the certificate. The CAs are those at the time of each
// handshake.
func (m metricsClients) require(server *tls.Config) {
	server.ClientAuth = tls.RequireAndVerifyClientCert
	server.VerifyConnection = m.verify
	server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool, err := m.authorities()
		if err != nil {
			return nil, err
		}
		present := server.Clone()
		present.ClientCAs = pool
		return present, nil
	}
}

// verify rejects a certificate of another client. Its chain was verified before.
func (m metricsClients) verify(state tls.ConnectionState) error {
	if name := state.PeerCertificates[0].Subject.CommonName; name != m.commonName {
		return fmt.Errorf("the client certificate of %q may not read the metrics", name)
	}
	return nil
}

// The ConfigMap with the CAs of the cluster's client certificates, which each Kubernetes
// cluster has for aggregated API servers.
const (
	clientCANamespace = "kube-system"
	clientCAConfigMap = "extension-apiserver-authentication"
	clientCAKey       = "client-ca-file"
)

// clusterAuthorities watches the CAs of the cluster's client certificates. Until they are
// read, there are none.
type clusterAuthorities struct {
	watched *dynamiccertificates.ConfigMapCAController
}

func newClusterAuthorities(client kubernetes.Interface) (clusterAuthorities, error) {
	watched, err := dynamiccertificates.NewDynamicCAFromConfigMapController("metrics-client", clientCANamespace, clientCAConfigMap,
		clientCAKey, client)
	return clusterAuthorities{watched}, err
}

func (c clusterAuthorities) Start(ctx context.Context) error {
	c.watched.Run(ctx, 1)
	return nil
}

// NeedLeaderElection is false because each replica serves metrics.
func (clusterAuthorities) NeedLeaderElection() bool { return false }

func (c clusterAuthorities) pool() (*x509.CertPool, error) {
	options, known := c.watched.VerifyOptions()
	if !known {
		return nil, fmt.Errorf("the key %s of ConfigMap %s/%s is not known", clientCAKey, clientCANamespace, clientCAConfigMap)
	}
	return options.Roots, nil
}

// fileAuthorities are the CAs of a file.
type fileAuthorities struct {
	path string

	mutex  sync.Mutex
	text   []byte
	parsed *x509.CertPool
}

// newFileAuthorities fails for a file without certificates.
func newFileAuthorities(path string) (*fileAuthorities, error) {
	f := &fileAuthorities{path: path}
	_, err := f.pool()
	return f, err
}

// pool parses the file again when it has changed.
func (f *fileAuthorities) pool() (*x509.CertPool, error) {
	text, err := readBounded(f.path)
	if err != nil {
		return nil, err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.parsed != nil && bytes.Equal(text, f.text) {
		return f.parsed, nil
	}
	parsed := x509.NewCertPool()
	if !parsed.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("the file %s has no certificate", f.path)
	}
	f.text, f.parsed = text, parsed
	return parsed, nil
}

// readBounded reads a file of at most maxCABundle bytes.
func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // the administrator names it
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(file, maxCABundle+1))
	if err == nil && len(text) > maxCABundle {
		err = fmt.Errorf("the file %s has more than %d bytes", path, maxCABundle)
	}
	return text, err
}

// hostedFlags are about the hosted clusters (HyperShift) of a management cluster.
type hostedFlags struct {
	clusters, runs int
	admission      string
}

func (h *hostedFlags) add(set *pflag.FlagSet) {
	set.IntVar(&h.clusters, "hosted-clusters", 0, fmt.Sprintf(
		"How many hosted clusters (HyperShift) of this management cluster to check as well, at most %d. Default: none.", hostedruns.MaxClusters))
	set.IntVar(&h.runs, "hosted-runs", 2, fmt.Sprintf("How many of the hosted clusters to check side by side, at most %d.",
		hostedruns.MaxRuns))
	set.StringVar(&h.admission, "hosted-admission", "",
		fmt.Sprintf("What the API server does with the change of the release of a hosted cluster or NodePool whose verdict is not "+
			"Ready: %s or %s. Default: nothing.", guard.Warn, guard.Deny))
}

func (h hostedFlags) validate() error {
	mode := guard.Mode(h.admission)
	switch {
	case h.clusters < 0 || h.clusters > hostedruns.MaxClusters:
		return fmt.Errorf("--hosted-clusters is %d; it must be 0 to %d", h.clusters, hostedruns.MaxClusters)
	case h.runs < 1 || h.runs > hostedruns.MaxRuns:
		return fmt.Errorf("--hosted-runs is %d; it must be 1 to %d", h.runs, hostedruns.MaxRuns)
	case mode != "" && mode != guard.Warn && mode != guard.Deny:
		return fmt.Errorf("--hosted-admission is %q; it must be %s or %s", h.admission, guard.Warn, guard.Deny)
	case mode != "" && h.clusters == 0:
		return fmt.Errorf("--hosted-admission needs --hosted-clusters: without verdicts, each update would be refused")
	}
	return nil
}

// needs are the permissions for the hosted clusters, or to remove the policies where there are none.
func (h hostedFlags) needs() access.Needs {
	needs := hostedguard.Needs(guard.Mode(h.admission))
	if h.clusters > 0 {
		needs = needs.And(hostedruns.Needs())
	}
	return needs
}

// addTo adds the runs to the manager, or the removal of the policies where there are none.
func (h hostedFlags) addTo(m manager.Manager, management *cluster.Cluster, options controller.Options, logger *slog.Logger) error {
	switched, err := hostedguard.New(management.Dynamic, guard.Mode(h.admission), management.Now)
	if err != nil {
		return err
	}
	if h.clusters == 0 {
		return m.Add(hostedruns.Off(switched, logger))
	}
	return hostedruns.Add(m, management, hostedruns.Options{
		Clusters: h.clusters, Runs: h.runs, Ahead: options.Ahead, Guard: switched, Interval: hostedruns.Interval, Logger: logger,
		Preflight: hostedruns.OnGuests(management, options.Run), Selection: plannedrun.Selection(options.Run),
	})
}

// uninstall removes the signals, the ClusterOperator, what is published for CVO and the objects for the console, and writes
// a line to out for each object that it has deleted, also when others could not be.
func uninstall(ctx context.Context, reached *cluster.Cluster, out io.Writer) error {
	if err := guard.UninstallNeeds().And(hostedguard.UninstallNeeds()).And(published.RemoveNeeds()).And(console.UninstallNeeds()).Check(ctx,
		reached.Kubernetes.AuthorizationV1()); err != nil {
		return err
	}
	deleted, err := guard.Uninstall(ctx, reached.Dynamic)
	hosted, hostedErr := hostedguard.Uninstall(ctx, reached.Dynamic)
	removed, removeErr := published.Remove(ctx, reached.Kubernetes)
	shown, shownErr := console.Uninstall(ctx, reached.Dynamic)
	deleted, err = slices.Concat(hosted, deleted, removed, shown), errors.Join(hostedErr, err, removeErr, shownErr)
	for _, object := range deleted {
		_, writeErr := fmt.Fprintf(out, "deleted %s %s\n", object.Kind, path.Join(object.Namespace, object.Name))
		err = errors.Join(err, writeErr)
	}
	return err
}

const (
	// noPage is the address for no page.
	noPage = "0"
	// maxPageConnections bounds the connections to the page; more wait.
	maxPageConnections = 64
	// pageShutdown bounds the end of the requests in progress.
	pageShutdown = 10 * time.Second
)

// pageFlags are about the page of the verdict, for browsers.
type pageFlags struct{ address, certificates string }

func (p *pageFlags) add(set *pflag.FlagSet) {
	set.StringVar(&p.address, "page-bind-address", noPage,
		"Address of a page with the verdict and what came of the last update, over HTTPS, such as :9443. It is shown to users with the "+
			"permission to "+access.Describe(page.Permission())+". Default: none.")
	set.StringVar(&p.certificates, "page-cert-dir", "",
		"Directory with tls.crt and tls.key of the page, which are read again when they change.")
}

func (p pageFlags) on() bool { return p.address != noPage }

func (p pageFlags) validate() error {
	switch {
	case p.on() && p.certificates == "":
		return errors.New("--page-bind-address needs --page-cert-dir: browsers do not accept a certificate that is signed by itself. On " +
			"OpenShift, annotate a Service with service.beta.openshift.io/serving-cert-secret-name, and mount that Secret")
	case !p.on() && p.certificates != "":
		return errors.New("--page-cert-dir needs --page-bind-address")
	}
	return nil
}

// needs are the permissions for the page; none while it is off.
func (p pageFlags) needs() access.Needs {
	if !p.on() {
		return access.Needs{}
	}
	return page.Needs()
}

// addTo adds the page to the manager, if there is one.
func (p pageFlags) addTo(m manager.Manager, reached *cluster.Cluster, options controller.Options) error {
	if !p.on() {
		return nil
	}
	watched, server, err := p.server(reached, options)
	if err != nil {
		return err
	}
	return errors.Join(m.Add(watched), m.Add(server))
}

// server is the server of the page, on each replica, and what reads its certificate again. Both must be run.
func (p pageFlags) server(reached *cluster.Cluster, options controller.Options) (*certwatcher.CertWatcher, *manager.Server, error) {
	watched, err := certwatcher.New(filepath.Join(p.certificates, "tls.crt"), filepath.Join(p.certificates, "tls.key"))
	if err != nil {
		return nil, nil, fmt.Errorf("--page-cert-dir: %w", err)
	}
	listener, err := net.Listen("tcp", p.address) //nolint:noctx // it lasts as long as the program
	if err != nil {
		return nil, nil, fmt.Errorf("--page-bind-address: %w", err)
	}
	// HTTP/2 has many requests on a connection, and these are counted.
	secured := tls.NewListener(netutil.LimitListener(listener, maxPageConnections), &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: watched.GetCertificate,
	})
	shown := page.New(reached, options.Run.Asked("the controller"), options.Logger)
	return watched, &manager.Server{
		Name: "page", Server: page.Server(shown, options.Logger), Listener: secured,
		ShutdownTimeout: new(pageShutdown),
	}, nil
}
