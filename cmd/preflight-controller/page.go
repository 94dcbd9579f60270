package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/net/netutil"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner/trigger/controller"
	"github.com/openshift/update-preflight/runner/trigger/page"
)

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
	set.StringVar(&p.address, "page-bind-address", noPage, "Address of a page with the verdict and what came of the last update, over HTTPS, such as :9443. It is shown to users with the permission to "+access.Describe(page.Permission())+". Default: none.")
	set.StringVar(&p.certificates, "page-cert-dir", "", "Directory with tls.crt and tls.key of the page, which are read again when they change.")
}

func (p pageFlags) on() bool { return p.address != noPage }

func (p pageFlags) validate() error {
	switch {
	case p.on() && p.certificates == "":
		return errors.New("--page-bind-address needs --page-cert-dir: browsers do not accept a certificate that is signed by itself. On OpenShift, annotate a Service with service.beta.openshift.io/serving-cert-secret-name, and mount that Secret")
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
	return watched, &manager.Server{Name: "page", Server: page.Server(shown, options.Logger), Listener: secured, ShutdownTimeout: new(pageShutdown)}, nil
}
