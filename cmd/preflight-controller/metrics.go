package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"sync"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
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
	watched, err := dynamiccertificates.NewDynamicCAFromConfigMapController("metrics-client", clientCANamespace, clientCAConfigMap, clientCAKey, client)
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
	defer file.Close() //nolint:errcheck // nothing was written
	text, err := io.ReadAll(io.LimitReader(file, maxCABundle+1))
	if err == nil && len(text) > maxCABundle {
		err = fmt.Errorf("the file %s has more than %d bytes", path, maxCABundle)
	}
	return text, err
}
