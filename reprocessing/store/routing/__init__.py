"""Store rules and rate classes (rates and backoffs that rules assign), and write the rules' decisions about letters."""
