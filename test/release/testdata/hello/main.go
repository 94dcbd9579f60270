// Command hello is a program that the test compiles.
package main

func main() { println("hello") }
