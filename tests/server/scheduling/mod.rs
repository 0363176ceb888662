mod circumstances;
mod cron;
mod declaring;
mod running;
