package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"sync"
)

// maxCABundle bounds the file of --metrics-client-ca-file, in bytes.
const maxCABundle = 1 << 20

// metricsClients are the clients that may read /metrics: those with a certificate that a
// CA of the file has signed, and with that common name. No API server is needed.
type metricsClients struct {
	file, commonName string

	mutex sync.Mutex
	text  []byte
	pool  *x509.CertPool
}

// newMetricsClients fails for a file without certificates.
func newMetricsClients(file, commonName string) (*metricsClients, error) {
	m := &metricsClients{file: file, commonName: commonName}
	_, err := m.authorities()
	return m, err
}

// require has a server require the certificate. The CAs are those of the file at the time
// of each handshake.
func (m *metricsClients) require(server *tls.Config) {
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
func (m *metricsClients) verify(state tls.ConnectionState) error {
	if name := state.PeerCertificates[0].Subject.CommonName; name != m.commonName {
		return fmt.Errorf("the client certificate of %q may not read the metrics", name)
	}
	return nil
}

// authorities are the CAs of the file, which is parsed again when it has changed.
func (m *metricsClients) authorities() (*x509.CertPool, error) {
	text, err := readBounded(m.file)
	if err != nil {
		return nil, err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.pool != nil && bytes.Equal(text, m.text) {
		return m.pool, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("the file %s has no certificate", m.file)
	}
	m.text, m.pool = text, pool
	return pool, nil
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
