// Command rentop is the cockpit for GPUs that you rent by the hour.
package main

func main() {}
